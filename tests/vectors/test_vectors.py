"""Golden vectors, reproduced without a line of the Rust code.

Written, like tests/bucketing.py, from docs/bucketing.md and docs/snapshot-format.md alone.

    tests/.venv/bin/python -m pytest tests/vectors
"""

import json
import struct
from pathlib import Path

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric import ed25519

from bucketing import SLOT_KEY_CONTEXT, Allocation, SlotKey, unit_text

VECTORS = Path(__file__).resolve().parents[2] / "shared" / "vectors"


def load(name):
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


# Bucketing


def test_every_slot_is_reproduced():
    vectors = load("slots.json")
    assert vectors["domain"] == SLOT_KEY_CONTEXT
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
        assert unit_text(vector["unit"]) is None, vector["why"]


# Allocation


def ranges(allocation):
    """Owner to its ranges, first and last slot, neighbours joined."""
    owned = {}
    for owner, slots in allocation.owned.items():
        of_owner = owned.setdefault(owner, [])
        for slot in sorted(slots):
            if of_owner and of_owner[-1][1] == slot - 1:
                of_owner[-1][1] = slot
            else:
                of_owner.append([slot, slot])
    return owned


@pytest.mark.parametrize("sequence", load("allocations.json")["sequences"], ids=lambda one: one["name"])
def test_every_allocation_is_reproduced(sequence):
    before = Allocation({})
    for step in sequence["steps"]:
        after = before.changed_to(step["weights"])
        assert ranges(after) == step["owned"]
        moved = {(from_, to): count for from_, to, count in step["moved"]}
        assert before.moves_to(after) == moved
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
    assert (fields["format"], fields["flags"]) == (1, 0)
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
    vector = load("snapshot.json")
    file = (VECTORS / "sample.snapshot").read_bytes()
    message = b"switchboard 2026-11 snapshot signature v1\0" + file[:76]
    secret = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vector["secret_key"].split(" ")[1]))
    assert secret.sign(message) == header(file)["signature"]
    public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(vector["public_key"].split(" ")[1]))
    public.verify(header(file)["signature"], message)


# The sample's decisions: the part that only needs bucketing.


def test_the_samples_experiment_is_reproduced():
    layer, own = SlotKey("ranking-2026"), SlotKey("heavy-trial")
    seen = set()
    for vector in load("snapshot.json")["decisions"]:
        attributes = vector["attributes"]
        user = unit_text(attributes.get("user_id", ""))
        if attributes.get("country") not in ("DE", "AT"):
            continue
        if user is None:
            expected = ("stable", None, None, "no_unit")
        elif layer.slot(user) >= 8000:
            expected = ("stable", None, None, "default")
        else:
            slot = own.slot(user)
            arm = "stable" if slot < 4500 else "heavy" if 5000 <= slot < 9500 else None
            expected = (arm, "heavy-trial", slot, "experiment") if arm else ("stable", None, None, "default")
        assert (vector["arm"], vector["rule"], vector["slot"], vector["reason"]) == expected
        seen.add(vector["reason"])
    assert {"experiment", "no_unit"} <= seen
