"""A model server that does exactly what a test says, and remembers every byte that it got."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Delivery:
    """One request as it arrived."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: socket.socket = field(repr=False)

    @property
    def method(self) -> str:
        return self.line.split(" ")[0]

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    def header(self, name: str) -> str | None:
        """The only value of this name; None where it is absent; more than one fails the test."""
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) <= 1, f"{name} arrived {len(values)} times: {values}"
        return values[0] if values else None

    def wait_for_peer_to_close(self) -> None:
        """Returns once the router has given the connection up; for a script that answers no more."""
        try:
            assert self.connection.recv(1) == b"", "more bytes came instead"
        except ConnectionResetError:
            return


Script = Callable[[Delivery], Iterator[bytes] | bytes]
"""What to send for a request: all at once, or piece by piece."""


class ScriptedModel:
    """Listens on a free port, or on `port`; each connection is served by its own thread."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.script = script
        self.deliveries: list[Delivery] = []
        self.connections = 0
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Refuses new connections and closes the open ones, as a crash would."""
        # shutdown wakes the thread that waits in accept; close alone would leave it the listener.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            _close(connection)

    def __enter__(self) -> "ScriptedModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while delivery := _read_request(stream, connection):
                    self.deliveries.append(delivery)
                    answer = self.script(delivery)
                    for piece in [answer] if isinstance(answer, bytes) else answer:
                        connection.sendall(piece)
        except OSError:
            return


def _close(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def response(body: bytes = b"{}", status: str = "200 OK", headers: tuple[tuple[str, str], ...] = ()) -> bytes:
    """A whole response with Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *(f"{key}: {value}" for key, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _read_request(stream, connection: socket.socket) -> Delivery | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return None
        head += line
    first, *rest = head.decode("latin-1").split("\r\n")[:-2]
    headers = [tuple(line.split(": ", 1)) if ": " in line else (line.rstrip(":"), "") for line in rest]
    named = {key.lower(): value for key, value in headers}
    if named.get("transfer-encoding", "").lower() == "chunked":
        body = _read_chunks(stream)
    else:
        body = stream.read(int(named.get("content-length", 0)))
    return Delivery(first, headers, body, connection)


def _read_chunks(stream) -> bytes:
    body = b""
    while size := int(_line(stream).split(b";")[0], 16):
        body += stream.read(size)
        _line(stream)
    while _line(stream) != b"\r\n":
        pass
    return body


def _line(stream) -> bytes:
    line = stream.readline()
    if not line:
        raise ConnectionResetError("the router gave the request up")
    return line
