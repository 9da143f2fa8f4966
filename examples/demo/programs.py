"""The programs that the demo starts: on free ports, logged, and stopped again whatever happens."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time

SAFETY_SECONDS = 30
"""No condition takes near as long, unless something is broken."""

_PR_SET_PDEATHSIG = 1


class Programs:
    """All started programs, in order. They run in the demo's folder, so that paths are short."""

    def __init__(self, binaries, folder):
        self._binaries = binaries
        self._folder = folder
        self._children = []

    def path(self, name):
        return self._binaries / name

    def start(self, label, name, *arguments, **environment):
        child = Child(label, [self.path(name), *arguments], self._folder, environment)
        self._children.append(child)
        return child

    def run(self, name, *arguments, **environment):
        """Runs a command to its end; its output, and whether it succeeded."""
        done = subprocess.run(
            [str(word) for word in (self.path(name), *arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={**os.environ, **environment},
            timeout=SAFETY_SECONDS,
            text=True,
            check=False,
        )
        return done.returncode == 0, done.stdout

    def stop_all(self):
        """In reverse order. Returns the labels of those that did not end when asked to."""
        return [child.label for child in reversed(self._children) if not child.stop()]


class Child:
    """One running program. It dies with the demo, even where the demo is killed."""

    def __init__(self, label, command, folder, environment):
        self.label = label
        self._log = folder / f"{label}.log"
        with open(self._log, "wb") as output:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **environment},
                start_new_session=True,  # Ctrl-C reaches the demo alone, which then stops all in order
                preexec_fn=_die_with_parent,
            )

    def is_running(self):
        return self._process.poll() is None

    def log_tail(self):
        with open(self._log, errors="replace") as log:
            return log.read()[-2000:]

    def signal(self, number):
        self._process.send_signal(number)

    def wait(self):
        return self._process.wait(SAFETY_SECONDS)

    def kill(self):
        """As a crash would."""
        self._process.kill()
        self._process.wait()

    def stop(self):
        """True if it ended when asked to."""
        if not self.is_running():
            return True
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SAFETY_SECONDS)
            return True
        self.kill()
        return False


def wait_until(condition, child=None):
    """Whether `condition` became true; pointless once `child` has ended."""
    deadline = time.monotonic() + SAFETY_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        if child is not None and not child.is_running():
            return False
        time.sleep(0.02)
    return False


def free_port(wanted):
    """`wanted`, or the next one that nobody listens on."""
    for port in range(wanted, wanted + 1000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {wanted} on")


def _die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
