"""Keys, a control plane, routers and mock model servers under one temporary folder."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from . import rules
from .control import Control, Plan
from .router import Router
from .upstream import Upstream
from .waiting import wait_until


class Stack:
    """A whole Switchboard on one host: a control plane and one router with two workers, without rules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sockets = folder / "sockets"
        self._sockets.mkdir(mode=0o700)
        self._routers: list[Router] = []
        self._upstreams: list[Upstream] = []
        self.control = Control(folder / "control", self._sockets)

    def __enter__(self) -> "Stack":
        self.control.start()
        self.router = self.start_router("router")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes():
            process.kill()

    def start_router(self, name: str, *, pushed_to: bool = True, **settings: object) -> Router:
        """Another router. `pushed_to=False` keeps its socket out of the control plane's sight."""
        sockets = self._sockets if pushed_to else self.folder
        settings = {"trusted_keys": [self.control.public_key], **settings}
        router = Router(self.folder / name, sockets / f"{name}.sock", **settings)
        self._routers.append(router)
        return router.start()

    def start_upstream(self, name: str, **flags: object) -> Upstream:
        """A mock model server; see `Upstream`."""
        upstream = Upstream(self.folder, name, **flags)
        self._upstreams.append(upstream)
        return upstream

    def apply(self, documents: Iterable[rules.Document]) -> int:
        """Adds or changes these documents; returns the version once every router runs it."""
        self.wait_connected()
        version = self.control.apply(documents)
        assert self.router.version == version, "apply answers when every router has activated"
        return version

    def plan(self, documents: Iterable[rules.Document]) -> Plan:
        return self.control.plan(documents)

    def rollback(self, version: int | None = None) -> int:
        return self.control.rollback(version)

    def wait_connected(self) -> None:
        """Until the control plane is connected to every router that should be."""
        wait_until(
            lambda: all(
                self.standing_of(router) not in (None, "away")
                for router in self._routers
                if router.socket.parent == self._sockets and router.process.exit_code is None
            ),
            "all routers to be connected",
        )

    def wait_for_standing(self, router: Router, standing: str) -> None:
        wait_until(lambda: self.standing_of(router) == standing, f"{router.name} to be {standing}")

    def standing_of(self, router: Router) -> str | None:
        """What `status` says of a router; None where it does not know it."""
        routers = self.control.status()["routers"]
        return next((one["standing"] for one in routers if one["socket"] == str(router.socket)), None)

    def log_tails(self) -> Iterator[tuple[str, str]]:
        for process in self._processes():
            yield process.name, process.log_tail()

    def _processes(self):
        owners = [*self._routers, self.control, *self._upstreams]
        return [owner.process for owner in owners if owner.process is not None]
