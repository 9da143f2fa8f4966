"""Golden vectors, reproduced without a line of the Rust code.

Written from docs/bucketing.md and docs/snapshot-format.md alone. Needs `pytest` and `blake3` from
PyPI; the signature is checked too where `cryptography` is installed.

    pytest tests/vectors
"""

import json
import struct
from pathlib import Path

import pytest
from blake3 import blake3

VECTORS = Path(__file__).resolve().parents[2] / "shared" / "vectors"
SLOTS = 10_000

# Unicode's White_Space; str.isspace() also takes U+001C..U+001F.
WHITE_SPACE = {
    *range(0x09, 0x0E),
    0x20,
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
}


def load(name):
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


# Bucketing


def canonical(unit):
    """The text that is hashed; None: no Unit."""
    if isinstance(unit, str):
        blank = all(ord(character) in WHITE_SPACE for character in unit)
        return None if blank or len(unit.encode()) > 8192 else unit
    if unit != int(unit) or abs(unit) > 2**53:
        return None
    return str(int(unit))


def slot_key(domain, salt):
    return blake3(salt.encode(), derive_key_context=domain).digest()


def slot_of(key, text):
    word = int.from_bytes(blake3(text.encode(), key=key).digest()[:8], "little")
    return word * SLOTS >> 64


def test_every_slot_is_reproduced():
    vectors = load("slots.json")
    assert vectors["domain"] == "switchboard 2026-11 experiment slot v1"
    count = 0
    for salt in vectors["salts"]:
        key = slot_key(vectors["domain"], salt["salt"])
        assert key.hex() == salt["key"], salt["salt"]
        for vector in salt["units"]:
            text = canonical(vector["unit"])
            assert text == vector["canonical"], vector
            assert slot_of(key, text) == vector["slot"], vector
            count += 1
    assert count > 200


def test_what_is_no_unit_has_no_canonical_text():
    for vector in load("slots.json")["not_units"]:
        assert canonical(vector["unit"]) is None, vector["why"]


# Allocation: a list of 10 000 owners, None for nobody.


def reallocate(before, weights):
    after = list(before)
    released = []
    owners = {owner for owner in before if owner is not None} | set(weights)
    for owner in owners:
        owned = [slot for slot, one in enumerate(before) if one == owner]
        released += owned[weights.get(owner, 0) :]  # the highest-numbered ones
    pool = sorted(released) + [slot for slot, owner in enumerate(before) if owner is None]
    for slot in released:
        after[slot] = None
    for owner in sorted(weights, key=str.encode):  # bytewise
        missing = max(0, weights[owner] - before.count(owner))
        for slot in pool[:missing]:
            after[slot] = owner
        pool = pool[missing:]
    return after


def ranges(allocation):
    """Owner to its ranges, first and last slot, neighbours joined."""
    owned = {}
    for slot, owner in enumerate(allocation):
        if owner is None:
            continue
        of_owner = owned.setdefault(owner, [])
        if of_owner and of_owner[-1][1] == slot - 1:
            of_owner[-1][1] = slot
        else:
            of_owner.append([slot, slot])
    return owned


def moves(before, after):
    counts = {}
    for pair in zip(before, after):
        if pair[0] != pair[1]:
            counts[pair] = counts.get(pair, 0) + 1
    return counts


@pytest.mark.parametrize("sequence", load("allocations.json")["sequences"], ids=lambda one: one["name"])
def test_every_allocation_is_reproduced(sequence):
    before = [None] * SLOTS
    for step in sequence["steps"]:
        after = reallocate(before, step["weights"])
        assert ranges(after) == step["owned"]
        moved = {(from_, to): count for from_, to, count in step["moved"]}
        assert moves(before, after) == moved
        before = after


# The file format


def header(file):
    names = ["magic", "format", "flags", "version", "created", "key_id", "length", "digest", "signature"]
    return dict(zip(names, struct.unpack_from("<8sHHQQ8sQ32s64s", file)))


def test_the_header_of_the_sample_is_as_documented():
    vector = load("snapshot.json")
    file = (VECTORS / "sample.snapshot").read_bytes()
    fields = header(file)
    payload = file[140:]
    assert len(file) == vector["bytes"]
    assert fields["magic"] == b"SWBDSNAP"
    assert (fields["format"], fields["flags"]) == (3, 0)
    assert fields["version"] == vector["version"]
    assert fields["created"] == vector["created_unix_ms"]
    assert fields["length"] == len(payload)
    assert fields["digest"] == blake3(payload).digest()
    assert fields["digest"].hex() == vector["digest"]
    word, public = vector["public_key"].split(" ")
    assert word == "switchboard-public-1"
    assert fields["key_id"] == blake3(bytes.fromhex(public)).digest()[:8]
    assert fields["key_id"].hex() == vector["key_id"]


def test_the_signature_of_the_sample_fits():
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    vector = load("snapshot.json")
    file = (VECTORS / "sample.snapshot").read_bytes()
    message = b"switchboard 2026-11 snapshot signature v1\0" + file[:76]
    secret = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vector["secret_key"].split(" ")[1]))
    assert secret.sign(message) == header(file)["signature"]
    public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(vector["public_key"].split(" ")[1]))
    public.verify(header(file)["signature"], message)


# The sample's decisions: the part that only needs bucketing.


def test_the_samples_experiment_is_reproduced():
    domain = load("slots.json")["domain"]
    layer, own = slot_key(domain, "ranking-2026"), slot_key(domain, "heavy-trial")
    seen = set()
    for vector in load("snapshot.json")["decisions"]:
        attributes = vector["attributes"]
        user = canonical(attributes.get("user_id", ""))
        if attributes.get("country") not in ("DE", "AT"):
            continue
        if user is None:
            expected = ("stable", None, None, "no_unit")
        elif slot_of(layer, user) >= 8000:
            expected = ("stable", None, None, "default")
        else:
            slot = slot_of(own, user)
            arm = "stable" if slot < 4500 else "heavy" if 5000 <= slot < 9500 else None
            expected = (arm, "heavy-trial", slot, "experiment") if arm else ("stable", None, None, "default")
        assert (vector["arm"], vector["rule"], vector["slot"], vector["reason"]) == expected
        seen.add(vector["reason"])
    assert {"experiment", "no_unit"} <= seen
