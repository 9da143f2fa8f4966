"""The push protocol as a control plane that means no good would speak it (docs/push-protocol.md)."""

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

HELLO, PREPARE, PREPARED, REFUSED, ACTIVATE, ACTIVE, STATS = range(1, 8)


@dataclass(frozen=True)
class Refusal:
    """What a router answered instead of doing as it was told."""

    version: int | None
    reason: str
    detail: str


class PushConnection:
    """A connection to a router's socket. The router's Hello is read at once."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(path))
        self._stream = self._socket.makefile("rb")
        kind, self.hello = self.read_frame()
        assert kind == HELLO

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, kind: int, body: bytes) -> None:
        self.send(struct.pack("<IB", 1 + len(body), kind) + body)

    def read_frame(self) -> tuple[int, bytes]:
        """The next frame that is no heartbeat. EOFError where the router has closed the connection."""
        while True:
            head = self._stream.read(5)
            if len(head) < 5:
                raise EOFError
            length, kind = struct.unpack("<IB", head)
            body = self._stream.read(length - 1)
            if kind != STATS:
                return kind, body

    def prepare(self, snapshot: bytes) -> Refusal | None:
        """None where the router has it ready now."""
        self.send_frame(PREPARE, snapshot)
        return self.read_answer_to_prepare()

    def read_answer_to_prepare(self) -> Refusal | None:
        return self._read_answer(PREPARED)

    def activate(self, version: int, digest: bytes) -> Refusal | None:
        """None where every core evaluates it now."""
        self.send_frame(ACTIVATE, struct.pack("<Q", version) + digest)
        return self._read_answer(ACTIVE)

    def is_closed(self) -> bool:
        try:
            self.read_frame()
        except (EOFError, ConnectionResetError):
            return True
        return False

    def _read_answer(self, expected: int) -> Refusal | None:
        kind, body = self.read_frame()
        if kind == expected:
            return None
        assert kind == REFUSED, f"frame of kind {kind}"
        _step, version = struct.unpack_from("<BQ", body)
        reason, rest = _text(body[9:])
        detail, rest = _text(rest)
        assert not rest
        return Refusal(version or None, reason, detail)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> "PushConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(data: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack_from("<H", data)
    return data[2 : 2 + length].decode(), data[2 + length :]
