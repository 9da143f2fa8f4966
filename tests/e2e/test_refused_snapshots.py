"""A Snapshot that is not what it should be is refused with the right reason, and the old one keeps serving."""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests

from harness import rules
from harness.push import PREPARE, PushConnection
from harness.router import Router
from harness.scripted import ScriptedModel, response
from harness.snapshot_file import HEADER_BYTES, REGIONS, SigningKey, SnapshotFile
from harness.stack import Stack

OBJECTIVE = "KEEP_SERVING"
REASON_BY_REGION = {
    "magic": "no_snapshot",
    "format": "format",
    "flags": "flags",
    "version": "signature",
    "created": "signature",
    "key id": "unknown_key",
    "digest": "signature",
    "signature": "signature",
}


@dataclass(frozen=True)
class Victim:
    """A router that runs a good Snapshot, and all that a signer needs. No control plane is connected."""

    router: Router
    key: SigningKey
    good: SnapshotFile
    original: bytes

    @property
    def newer(self) -> SnapshotFile:
        """The good content under a version that the router would take."""
        return self.good.but(version=self.good.version + 1_000)

    def refusal_of(self, snapshot: bytes) -> str:
        """The reason; the connection survives, and what ran still runs."""
        with PushConnection(self.router.socket) as control:
            refusal = control.prepare(snapshot)
            assert refusal is not None, "it was taken"
            assert control.prepare(self.newer.signed_with(self.key)) is None, "the connection goes on"
        return refusal.reason


@pytest.fixture(scope="module")
def victim(stack: Stack) -> Iterator[Victim]:
    with ScriptedModel(lambda _: response(b"{}")) as model:
        split = rules.split_rule({"only": 5000}, salt="some-salt")
        stack.apply(rules.one_model(OBJECTIVE, model.address))
        version = stack.apply(rules.one_model(OBJECTIVE, model.address, rules=[split]))
        original = stack.control.snapshot_file(version)
        stack.control.stop()
        yield Victim(stack.router, stack.control.signing_key(), SnapshotFile.parse(original), original)


@pytest.fixture(autouse=True)
def _keeps_serving(victim: Victim) -> Iterator[None]:
    yield
    assert victim.router.version == victim.good.version
    headers = {"x-switchboard-objective": OBJECTIVE}
    answer = requests.get(f"{victim.router.url}/x", headers=headers, timeout=30)
    assert (answer.status_code, answer.headers["x-switchboard-snapshot"]) == (200, str(victim.good.version))


def test_a_good_newer_one_is_prepared(victim):
    with PushConnection(victim.router.socket) as control:
        assert control.prepare(victim.newer.signed_with(victim.key)) is None


def test_every_tampered_byte_of_the_header_is_refused(victim, show):
    good = victim.newer.signed_with(victim.key)
    reasons: dict[str, Counter[str]] = {}
    with PushConnection(victim.router.socket) as control:
        for region, positions in REGIONS.items():
            for position in positions:
                refusal = control.prepare(flipped(good, position))
                assert refusal is not None, f"byte {position} ({region})"
                reasons.setdefault(region, Counter())[refusal.reason] += 1
    show(f"reasons by region: { ({region: dict(found) for region, found in reasons.items()}) }")
    for region, expected in REASON_BY_REGION.items():
        assert set(reasons[region]) == {expected}, region
    assert set(reasons["payload length"]) <= {"truncated", "trailing"}


def test_every_tampered_byte_of_the_payload_is_refused(victim, show):
    good = victim.newer.signed_with(victim.key)
    with PushConnection(victim.router.socket) as control:
        for position in range(HEADER_BYTES, len(good)):
            refusal = control.prepare(flipped(good, position))
            assert refusal is not None, f"byte {position}"
            assert refusal.reason == "digest"
    show(f"{len(good) - HEADER_BYTES} payload bytes, each flipped and refused")


def test_a_file_cut_anywhere_is_refused(victim):
    good = victim.newer.signed_with(victim.key)
    with PushConnection(victim.router.socket) as control:
        for length in range(len(good)):
            refusal = control.prepare(good[:length])
            assert refusal is not None, f"cut to {length} bytes"
            assert refusal.reason == "truncated", f"cut to {length} bytes"


def test_bytes_after_the_payload_are_refused(victim):
    assert victim.refusal_of(victim.newer.signed_with(victim.key) + b"x") == "trailing"


def test_an_unknown_key_is_refused(victim):
    stranger = SigningKey(hashlib.sha256(b"stranger").digest())
    assert victim.refusal_of(victim.newer.signed_with(stranger)) == "unknown_key"


def test_a_strangers_signature_under_a_trusted_key_id_is_refused(victim):
    stranger = SigningKey(hashlib.sha256(b"stranger").digest())
    forged = bytearray(victim.newer.signed_with(stranger))
    forged[28:36] = victim.key.id
    assert victim.refusal_of(bytes(forged)) == "signature"


def test_an_older_version_is_refused(victim):
    assert victim.refusal_of(victim.good.but(version=victim.good.version - 1).signed_with(victim.key)) == "not_newer"


def test_version_zero_is_refused(victim):
    assert victim.refusal_of(victim.good.but(version=0).signed_with(victim.key)) == "version_zero"


def test_the_running_version_again_is_fine_but_not_with_other_content(victim):
    with PushConnection(victim.router.socket) as control:
        assert control.prepare(victim.original) is None
    other = victim.good.but(payload=flipped(victim.good.payload, 0))
    assert victim.refusal_of(other.signed_with(victim.key)) == "same_version"


@pytest.mark.parametrize("off_by", [-1, 1, 0x7FFF])
def test_another_format_is_refused_even_if_it_is_signed(victim, off_by):
    other = victim.newer.format + off_by
    assert victim.refusal_of(victim.newer.but(format=other).signed_with(victim.key)) == "format"


def test_a_payload_that_is_no_archive_is_refused(victim):
    assert victim.refusal_of(victim.newer.but(payload=b"\xff" * 1000).signed_with(victim.key)) == "archive"
    assert victim.refusal_of(victim.newer.but(payload=b"").signed_with(victim.key)) == "archive"


def test_every_semantic_error_is_refused_even_if_it_is_signed(victim, show):
    """Each byte of the payload is set to 255 and signed by the trusted key: what a broken builder might emit."""
    outcomes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    with PushConnection(victim.router.socket) as control:
        for position in range(len(victim.good.payload)):
            changed = bytearray(victim.good.payload)
            changed[position] = 0xFF
            refusal = control.prepare(victim.newer.but(payload=bytes(changed)).signed_with(victim.key))
            reason = refusal.reason if refusal else "harmless"
            outcomes[reason] += 1
            if refusal:
                examples.setdefault(reason, refusal.detail)
    show(f"{len(victim.good.payload)} signed payloads with one byte set to 255: {dict(outcomes)}")
    show(f"such as: {examples['semantic']}")
    assert outcomes["semantic"] > 0
    assert set(outcomes) <= {"semantic", "archive", "hash_version", "group", "harmless"}


def test_activating_what_was_not_prepared_is_refused(victim):
    with PushConnection(victim.router.socket) as control:
        refusal = control.activate(victim.newer.version, victim.newer.payload_digest)
        assert refusal is not None
        assert refusal.reason == "not_prepared"


@pytest.mark.parametrize(
    "torn",
    [
        struct.pack("<I", 0),
        struct.pack("<I", 0xFFFF_FFFF),
        struct.pack("<IB", 10, 99),
        struct.pack("<IB", 0x7FFF_FFFF, PREPARE),
    ],
    ids=["no kind", "4 GiB", "unknown kind", "2 GiB to prepare"],
)
def test_a_broken_frame_closes_its_connection_and_no_other(victim, torn):
    with PushConnection(victim.router.socket) as bystander, PushConnection(victim.router.socket) as broken:
        broken.send(torn)
        assert broken.is_closed()
        assert bystander.prepare(victim.newer.signed_with(victim.key)) is None


def test_a_frame_cut_by_the_connections_end_changes_nothing(victim):
    with PushConnection(victim.router.socket) as control:
        control.send(struct.pack("<IB", 1_000, PREPARE) + b"SWBDSNAP")


def test_a_frame_that_comes_byte_by_byte_is_read(victim):
    body = victim.newer.signed_with(victim.key)
    frame = struct.pack("<IB", 1 + len(body), PREPARE) + body
    with PushConnection(victim.router.socket) as control:
        for position in range(200):
            control.send(frame[position : position + 1])
        control.send(frame[200:])
        assert control.read_answer_to_prepare() is None


def test_a_damaged_file_on_disk_is_not_served(victim):
    """The router refuses to serve it, says so, and waits for a push."""
    victim.router.stop()
    (path,) = victim.router.state_dir.glob(f"snapshot-{victim.good.version}-*.bin")
    assert path.read_bytes() == victim.original
    path.write_bytes(flipped(victim.original, HEADER_BYTES + 5))
    victim.router.start()
    assert not victim.router.is_ready()
    victim.router.stop()
    path.write_bytes(victim.original)
    victim.router.start().wait_ready()


def flipped(data: bytes, position: int) -> bytes:
    """`data` with all bits of one byte flipped."""
    changed = bytearray(data)
    changed[position] ^= 0xFF
    return bytes(changed)
