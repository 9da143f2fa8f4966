"""The demo's router."""

import http.client
import json

from programs import free_port, wait_until


class Router:
    def __init__(self, screen, programs, folder):
        self._screen = screen
        self._programs = programs
        self._folder = folder
        self.sockets = folder / "sockets"
        self.port = free_port(8080)
        self._admin_port = free_port(9901)
        self._child = None

    def start(self, trusted_key, facts):
        """It listens for its clients and for the control plane; it asks nobody for anything."""
        self.sockets.mkdir(mode=0o700)
        # Nothing stands in front of it here, so nothing needs time to notice that it stops.
        settings = f'[drain]\nwait = "10ms"\n\n[facts]\nsource = "file"\nfile = "{facts}"\n'
        (self._folder / "router.toml").write_text(settings)
        arguments = [
            "switchboard-router",
            "--config=router.toml",
            f"--listen=127.0.0.1:{self.port}",
            f"--admin-listen=127.0.0.1:{self._admin_port}",
            "--socket=sockets/demo.sock",
            f"--trusted-key={trusted_key}",
            "--state-dir=router-state",
            "--workers=2",
        ]
        self._screen.command(arguments)
        self._child = self._programs.start("router", *arguments)
        self._screen.require(wait_until(self._is_alive, self._child), "the router is alive", self._child)

    def is_ready(self):
        return self._get("/readyz")[0] == 200

    def version(self):
        """The version that it evaluates; None where there is none."""
        status, body = self._get("/snapshot")
        active = json.loads(body)["active"] if status == 200 else None
        return active and active["version"]

    def _is_alive(self):
        return self._get("/healthz")[0] == 200

    def _get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self._admin_port, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except OSError:
            return None, b""
        finally:
            connection.close()
