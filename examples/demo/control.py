"""The demo's control plane: the commands that a user types, and its HTTP API for numbers."""

import json
import urllib.request

from programs import free_port, wait_until


class Control:
    def __init__(self, screen, programs):
        self._screen = screen
        self._programs = programs
        self._url = f"http://127.0.0.1:{free_port(7700)}"

    def make_keys(self):
        """The secret key stays with the control plane; routers get the public one, which this returns."""
        self._type("keygen", "--secret=signing.key")
        return "signing.key.pub"

    def start(self, sockets):
        """It connects to every router that it finds in the folder `sockets`."""
        arguments = [
            "switchboard-control",
            "serve",
            f"--listen={self._url.removeprefix('http://')}",
            "--database=registry.db",
            "--signing-key=signing.key",
            f"--sockets={sockets.name}",
        ]
        self._screen.command(arguments)
        child = self._programs.start("control", *arguments)
        self._screen.require(wait_until(self._knows_a_router, child), "the control plane is connected", child)

    def apply(self, rules):
        """Returns the version once it is active."""
        self._type("apply", "-f", rules.name)
        return self._get("/v1/status")["active"]["version"]

    def plan(self, rules, objective, rule):
        """What `apply` would do; returns whose Slots would move, for one Experiment."""
        self._type("plan", "-f", rules.name)
        files = [{"name": path.name, "text": path.read_text()} for path in sorted(rules.iterdir())]
        plan = self._post("/v1/plan", {"files": files})
        (change,) = (
            change for change in plan["experiments"] if (change["objective"], change["rule"]) == (objective, rule)
        )
        return change["moves"]

    def rollback(self, version):
        """Returns the new version."""
        self._type("rollback", version)
        return self._get("/v1/status")["active"]["version"]

    def slots_of_users(self, objective, rule, users):
        """Each user's Slot in one Experiment, for those who come as far as its Rule."""
        slots = {}
        for user in users:
            explanation = self._post("/v1/explain", {"objective": objective, "unit": user})
            for tried in explanation["tried"]:
                if tried["rule"] == rule:
                    slots[user] = tried["slot"]
        return slots

    def _type(self, *words):
        self._screen.command(["switchboard-control", *words])
        succeeded, output = self._programs.run(
            "switchboard-control",
            *words,
            SWITCHBOARD_CONTROL_URL=self._url,
            SWITCHBOARD_TOKEN_FILE="registry.db.token",  # `serve` has made it
        )
        self._screen.note(output.strip())
        if not succeeded:
            self._screen.claim(False, f"switchboard-control {words[0]} succeeds", essential=True)

    def _knows_a_router(self):
        try:
            return any(router["standing"] != "away" for router in self._get("/v1/status")["routers"])
        except OSError:
            return False

    def _get(self, path):
        with urllib.request.urlopen(self._url + path, timeout=30) as response:
            return json.load(response)

    def _post(self, path, body):
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
