"""Bucketing, written a second time from docs/bucketing.md and with another BLAKE3 library.

Nothing here is shared with the Rust code: where the two disagree, one of them is wrong.
"""

from collections import Counter
from collections.abc import Mapping

from blake3 import blake3

SLOT_COUNT = 10_000
SLOT_KEY_CONTEXT = "switchboard 2026-11 experiment slot v1"


# Unicode's White_Space. str.isspace() also takes U+001C to U+001F.
_WHITE_SPACE = frozenset(
    [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
)
_TEXT_BYTES_MAX = 8192
_INTEGER_MAX = 2**53


def unit_text(unit: str | float) -> str | None:
    """The canonical text that is hashed; None for what is no Unit."""
    if isinstance(unit, str):
        blank = all(ord(character) in _WHITE_SPACE for character in unit)
        return None if blank or len(unit.encode()) > _TEXT_BYTES_MAX else unit
    if unit != int(unit) or abs(unit) > _INTEGER_MAX:
        return None
    return str(int(unit))


class SlotKey:
    """The key that a salt becomes; one per experiment and per layer."""

    def __init__(self, salt: str) -> None:
        self._key = blake3(salt.encode(), derive_key_context=SLOT_KEY_CONTEXT).digest()

    @property
    def bytes(self) -> bytes:
        return self._key

    def slot(self, unit: str) -> int:
        digest = blake3(unit.encode(), key=self._key).digest()
        return int.from_bytes(digest[:8], "little") * SLOT_COUNT >> 64


class Allocation:
    """Who owns which Slots, of one Experiment (the owners are Arms) or one Layer."""

    def __init__(self, owned: dict[str, set[int]]) -> None:
        self.owned = owned
        self._owner = {slot: name for name, slots in owned.items() for slot in slots}

    @classmethod
    def fresh(cls, weights: Mapping[str, int]) -> "Allocation":
        return cls({}).changed_to(weights)

    def arm_of(self, slot: int) -> str | None:
        """None where nobody owns it."""
        return self._owner.get(slot)

    def changed_to(self, weights: Mapping[str, int]) -> "Allocation":
        """The allocation that follows: shrinking owners release their highest Slots, growing ones take, by
        name, the lowest of what was released and then of what nobody owned before."""
        kept: dict[str, set[int]] = {}
        released: list[int] = []
        for name, slots in self.owned.items():
            ascending = sorted(slots)
            weight = weights.get(name, 0)
            kept[name] = set(ascending[:weight])
            released += ascending[weight:]
        unowned = [slot for slot in range(SLOT_COUNT) if slot not in self._owner]
        to_take = iter(sorted(released) + unowned)
        for name in sorted(weights, key=str.encode):
            mine = kept.setdefault(name, set())
            while len(mine) < weights[name]:
                mine.add(next(to_take))
        return Allocation({name: slots for name, slots in kept.items() if slots})

    def moves_to(self, after: "Allocation") -> Counter[tuple[str | None, str | None]]:
        """How many Slots change hands between which owners; None is nobody."""
        changes = ((self.arm_of(slot), after.arm_of(slot)) for slot in range(SLOT_COUNT))
        return Counter((before, now) for before, now in changes if before != now)
