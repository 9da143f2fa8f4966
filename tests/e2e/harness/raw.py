"""HTTP as bytes on a socket, for what no client library would send."""

import socket
from dataclasses import dataclass


@dataclass
class RawResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def says_close(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


class RawConnection:
    """One connection. Reading past the end of what the router sends fails after a while."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._stream = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def end_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def read_head(self) -> RawResponse:
        """Status line and headers; the body stays unread."""
        status_line = self._stream.readline()
        assert status_line.startswith(b"HTTP/1.1 "), f"no status line: {status_line!r}"
        headers: dict[str, str] = {}
        while (line := self._stream.readline()) not in (b"\r\n", b""):
            name, value = line.decode("latin-1").rstrip("\r\n").split(":", 1)
            headers[name.lower()] = value.strip()
        return RawResponse(int(status_line.split(b" ")[1]), headers, b"")

    def read_response(self, *, has_body: bool = True) -> RawResponse:
        """One response by its own framing. `has_body=False`: the answer to HEAD."""
        response = self.read_head()
        if not has_body or response.status in (204, 304) or response.status < 200:
            return response
        if response.headers.get("transfer-encoding", "").lower() == "chunked":
            response.body = b"".join(iter(self.read_chunk, b""))
        elif "content-length" in response.headers:
            response.body = self.read_exactly(int(response.headers["content-length"]))
        else:
            response.body = self._stream.read()
        return response

    def read_chunk(self) -> bytes:
        """One chunk's content; empty at the last one, whose trailer section is read too."""
        size = int(self._stream.readline().split(b";")[0], 16)
        if size == 0:
            while self._stream.readline() not in (b"\r\n", b""):
                pass
            return b""
        chunk = self.read_exactly(size)
        assert self._stream.readline() == b"\r\n"
        return chunk

    def read_exactly(self, count: int) -> bytes:
        data = self._stream.read(count)
        assert len(data) == count, f"the connection ended after {len(data)} of {count} bytes"
        return data

    def is_closed(self) -> bool:
        """Whether the router has closed it, with nothing more to read."""
        try:
            return self._stream.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
