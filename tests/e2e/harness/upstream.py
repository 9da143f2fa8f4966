"""switchboard-loadtest upstream: the mock model server."""

import errno
import socket
from pathlib import Path

import requests

from .ports import free_port
from .process import Process, binary
from .waiting import wait_until


class Upstream:
    """One mock model server; its answers carry its name. `flags`: `latency="fixed:5ms"`, `tokens=4`, …"""

    def __init__(self, folder: Path, name: str, **flags: object) -> None:
        self.name = name
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        options = [f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()]
        command = [binary("switchboard-loadtest"), "upstream", "--listen", self.address, "--name", name, *options]
        self.process = Process(f"upstream {name}", command, folder / f"upstream-{name}-{self.port}.log")
        self.process.wait_until(lambda: "listening on" in self.process.log_tail(), f"upstream {name} to listen")

    def behave(self, **behaviour: object) -> None:
        """Changes how requests are answered from now on."""
        requests.post(f"http://{self.address}/__control/behaviour", json=behaviour, timeout=30).raise_for_status()

    def stats(self) -> dict:
        """What it saw."""
        return requests.get(f"http://{self.address}/__control/stats", timeout=30).json()

    def kill(self) -> None:
        """Returns once nobody can connect: the kernel takes an io_uring's sockets down after the process has ended."""
        self.process.kill()
        wait_until(self._refuses, f"connections to {self.address} to be refused")

    def _refuses(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == errno.ECONNREFUSED

    def stop(self) -> None:
        self.process.stop()
