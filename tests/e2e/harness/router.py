"""switchboard-router as a child process, with its admin pages."""

import json
import signal
import subprocess
from pathlib import Path

import requests

from .metrics import Metrics
from .ports import free_port
from .process import Process, binary
from .waiting import wait_until


class Router:
    """One router in its own folder; the folder outlives restarts, as on a real host."""

    def __init__(self, folder: Path, socket: Path, **settings: object) -> None:
        """`settings` are keys of router.toml: `trusted_keys=[…]`, `drain={"max": "5s"}`, …"""
        folder.mkdir(parents=True)
        self.folder = folder
        self.name = folder.name
        self.socket = socket
        self.port = free_port()
        self.admin_port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.state_dir = folder / "state"
        self.log = folder / "log"
        self._config = folder / "router.toml"
        self._config.write_text(self._toml(settings))
        self.process: Process | None = None

    def _toml(self, settings: dict[str, object]) -> str:
        tables: dict[str, dict[str, object]] = {
            "admin": {"listen": f"127.0.0.1:{self.admin_port}"},
            "cores": {"workers": 2},
            "feed": {"name": self.name, "socket": str(self.socket)},
            # Nobody balances load in front of the tests, so nobody needs time to notice.
            "drain": {"wait": "10ms", "max": "20s"},
        }
        top: dict[str, object] = {
            "listen": [f"127.0.0.1:{self.port}"],
            "state_dir": str(self.state_dir),
        }
        for key, value in settings.items():
            if isinstance(value, dict):
                tables.setdefault(key, {}).update(value)
            else:
                top[key] = value
        lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"

    def start(self) -> "Router":
        command = [binary("switchboard-router"), "--config", self._config]
        self.process = Process(self.name, command, self.log)
        self.process.wait_until(self.is_alive, f"{self.name} to be alive")
        return self

    def stop(self) -> int:
        return self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def ask_to_stop(self) -> None:
        self.process.signal(signal.SIGTERM)

    def restart(self) -> "Router":
        self.stop()
        return self.start()

    def spool(self, look: str) -> str:
        """What `switchboard-router spool dump` or `verify` prints of this router's spool."""
        command = [binary("switchboard-router"), "--config", self._config, "spool", look]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    # --- Admin pages ---

    def admin(self, path: str) -> requests.Response:
        return requests.get(f"http://127.0.0.1:{self.admin_port}{path}", timeout=30)

    def is_alive(self) -> bool:
        return self._status("/healthz") == 200

    def is_ready(self) -> bool:
        return self._status("/readyz") == 200

    def _status(self, path: str) -> int | None:
        try:
            return self.admin(path).status_code
        except requests.ConnectionError:
            return None

    def wait_ready(self) -> "Router":
        self.process.wait_until(self.is_ready, f"{self.name} to be ready")
        return self

    def metrics(self) -> Metrics:
        return Metrics(self.admin("/metrics").text)

    def snapshot(self) -> dict | None:
        """What the running Snapshot says of itself; None where there is none."""
        return self.admin("/snapshot").json()["active"]

    @property
    def version(self) -> int | None:
        """The running Snapshot's version; None where there is none."""
        snapshot = self.snapshot()
        return snapshot and snapshot["version"]

    def worker_cpu_seconds(self) -> dict[str, float]:
        """CPU time that each network thread has used, as the kernel counts it."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        names = {thread: (thread / "comm").read_text().strip() for thread in threads}
        return {
            name: int((thread / "schedstat").read_text().split()[0]) / 1e9
            for thread, name in names.items()
            if name.startswith("worker")
        }

    def wait_for_version(self, version: int) -> None:
        wait_until(
            lambda: self.version == version,
            f"{self.name} to run version {version}",
            give_up=self.process.why_gone,
        )
