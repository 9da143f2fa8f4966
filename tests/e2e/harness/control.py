"""switchboard-control as a child process: keys, the HTTP API, the command line."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import requests

from . import rules
from .ports import free_port
from .process import Process, binary
from .snapshot_file import SigningKey


class Refused(Exception):  # noqa: N818 - it is an answer, and a right one in many tests
    """The API said no."""

    def __init__(self, response: requests.Response) -> None:
        super().__init__(f"{response.status_code}: {response.text}")
        self.status = response.status_code
        self.problem = response.json()


class Plan:
    """What a change would do."""

    def __init__(self, document: dict) -> None:
        self.document = document

    def slot_moves(self, objective: str, rule: str) -> Counter[tuple[str | None, str | None]]:
        """How many Slots of an Experiment change hands between which Arms; None: falls through."""
        return Counter(
            {
                (move["from"], move["to"]): move["slots"]
                for experiment in self.document["experiments"]
                if (experiment["objective"], experiment["rule"]) == (objective, rule)
                for move in experiment["moves"]
            }
        )


class Control:
    """One control plane in its own folder; the folder outlives restarts."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.sockets = sockets
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log"
        self.process: Process | None = None
        self.flags: list[str] = []
        """More flags of `serve`, for the next start."""
        self._secret_key = folder / "signing.key"
        self._database = folder / "registry.db"
        self.run("keygen", f"--secret={self._secret_key}", check=True)

    # --- Its processes ---

    def start(self) -> "Control":
        self.process = Process(
            "control",
            [
                binary("switchboard-control"),
                "serve",
                f"--listen=127.0.0.1:{self.port}",
                f"--database={self._database}",
                f"--signing-key={self._secret_key}",
                f"--sockets={self.sockets}",
                "--ready-within-ms=3000",
                *self.flags,
            ],
            self.log,
        )
        self.process.wait_until(self._is_alive, "the control plane to be alive")
        return self

    def stop(self) -> int:
        return self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def run(self, *arguments: object, check: bool = False) -> subprocess.CompletedProcess[str]:
        """A command, as a user types it."""
        environment = {"SWITCHBOARD_CONTROL_URL": self.url, "SWITCHBOARD_TOKEN_FILE": str(self._token_file)}
        return subprocess.run(
            [binary("switchboard-control"), *map(str, arguments)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | environment,
            timeout=60,
            text=True,
            check=check,
        )

    @property
    def _token_file(self) -> Path:
        return self._database.with_name("registry.db.token")

    @property
    def public_key(self) -> str:
        return self._secret_key.with_name("signing.key.pub").read_text().strip()

    def signing_key(self) -> SigningKey:
        return SigningKey.of_line(self._secret_key.read_text())

    def _is_alive(self) -> bool:
        try:
            return requests.get(f"{self.url}/healthz", timeout=30).ok
        except requests.ConnectionError:
            return False

    # --- The HTTP API ---

    def apply(self, documents: Iterable[rules.Document]) -> int:
        """Adds or changes these documents; returns the version once it is active."""
        return self._post("/v1/apply", _rules_request(documents))["version"]

    def plan(self, documents: Iterable[rules.Document]) -> Plan:
        return Plan(self._post("/v1/plan", _rules_request(documents)))

    def rollback(self, version: int | None = None) -> int:
        return self._post("/v1/rollback", {"version": version})["version"]

    def explain(self, objective: str, unit: str) -> dict:
        return self._post("/v1/explain", {"objective": objective, "unit": unit})

    def version(self, number: int) -> dict:
        """A version with its state and evidence."""
        return self._get(f"/v1/versions/{number}").json()

    def status(self) -> dict:
        return self._get("/v1/status").json()

    def snapshot_file(self, version: int | None = None) -> bytes:
        return self._get("/v1/snapshot", version=version).content

    def export(self, version: int | None = None) -> str:
        return self._get("/v1/export", version=version).text

    def _get(self, path: str, **parameters: object) -> requests.Response:
        response = requests.get(f"{self.url}{path}", params=parameters, headers=self._headers(), timeout=60)
        response.raise_for_status()
        return response

    def _post(self, path: str, body: dict) -> dict:
        response = requests.post(f"{self.url}{path}", json=body, headers=self._headers(), timeout=60)
        if not response.ok:
            raise Refused(response)
        return response.json()

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token_file.read_text().strip()}"}


def _rules_request(documents: Iterable[rules.Document]) -> dict:
    return {"files": [{"name": "test.yaml", "text": rules.write(documents)}]}
