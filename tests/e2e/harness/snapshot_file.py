"""Snapshot files taken apart and signed anew, from docs/snapshot-format.md."""

import dataclasses
import struct
from dataclasses import dataclass
from typing import ClassVar

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SIGNED = struct.Struct("<8sHHQQ8sQ32s")
HEADER_BYTES = SIGNED.size + 64

REGIONS = {
    "magic": range(8),
    "format": range(8, 10),
    "flags": range(10, 12),
    "version": range(12, 20),
    "created": range(20, 28),
    "key id": range(28, 36),
    "payload length": range(36, 44),
    "digest": range(44, 76),
    "signature": range(76, 140),
}
"""The header's fields by their bytes; the payload follows."""


class SigningKey:
    """An Ed25519 key from its 32-byte seed."""

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @classmethod
    def of_line(cls, line: str) -> "SigningKey":
        """From the line that `switchboard-control keygen` writes."""
        word, digits = line.split()
        assert word == "switchboard-secret-1"
        return cls(bytes.fromhex(digits))

    @property
    def id(self) -> bytes:
        return blake3(self.public).digest()[:8]

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


@dataclass(frozen=True)
class SnapshotFile:
    """A Snapshot file's fields. `signed_with` makes a new file of them, true or not."""

    DOMAIN: ClassVar[bytes] = b"switchboard 2026-11 snapshot signature v1\0"

    format: int
    flags: int
    version: int
    created: int
    payload: bytes
    digest: bytes | None = None
    """None: the payload's own."""

    @classmethod
    def parse(cls, data: bytes) -> "SnapshotFile":
        magic, format_, flags, version, created, _key, length, digest = SIGNED.unpack_from(data)
        payload = data[HEADER_BYTES:]
        assert magic == b"SWBDSNAP"
        assert length == len(payload)
        assert digest == blake3(payload).digest()
        return cls(format_, flags, version, created, payload)

    def but(self, **fields: object) -> "SnapshotFile":
        return dataclasses.replace(self, **fields)

    @property
    def payload_digest(self) -> bytes:
        return self.digest or blake3(self.payload).digest()

    def signed_with(self, key: SigningKey) -> bytes:
        fields = (self.format, self.flags, self.version, self.created, key.id, len(self.payload), self.payload_digest)
        signed = SIGNED.pack(b"SWBDSNAP", *fields)
        return signed + key.sign(self.DOMAIN + signed) + self.payload
