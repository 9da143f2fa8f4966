"""Free ports on the loopback address."""

import random
import socket

# Below the range that Linux hands to outgoing connections (32768 and up), so that no connection
# takes a port between its choice here and its use by the server.
_CANDIDATES = range(20_000, 32_000)

_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on; each call gives another one."""
    while True:
        port = random.choice(_CANDIDATES)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
