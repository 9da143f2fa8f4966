"""One started process: its log, its pid, its end."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[3]

_BINARIES = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / os.environ.get(
    "SWITCHBOARD_PROFILE", "debug"
)


def binary(name: str) -> Path:
    """The path of a program of this workspace, which `make build` made."""
    path = _BINARIES / name
    assert path.exists(), f"{path} is missing: run `make build`"
    return path


class Process:
    """A child process in its own session. Its output goes to a file, which pytest shows on failure."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, **popen: object) -> None:
        self.name = name
        self.log = log
        self.command = [str(word) for word in command]
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **popen,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._child.poll()

    def why_gone(self) -> str | None:
        """None while it runs; else a text with the end of its log."""
        code = self.exit_code
        return None if code is None else f"{self.name} ended with {code}:\n{self.log_tail()}"

    def log_tail(self, bytes_max: int = 4_000) -> str:
        return self.log.read_bytes()[-bytes_max:].decode(errors="replace")

    def wait_until(self, condition, what: str):
        """Like `waiting.wait_until`, but stops waiting when the process has ended."""
        return wait_until(condition, what, give_up=self.why_gone)

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self, seconds: float = 60) -> int:
        """Its exit code, once it has ended."""
        return self._child.wait(seconds)

    def stop(self) -> int:
        """Asks it to end (SIGTERM) and waits; what does not end is killed and fails the test."""
        if self.exit_code is None:
            self.signal(signal.SIGTERM)
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end on SIGTERM:\n{self.log_tail()}") from None
        return self.wait()

    def kill(self) -> None:
        """Ends it at once, as a crash would (SIGKILL), with all that it started."""
        if self.exit_code is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.wait()
