"""Waiting for conditions, never for time."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

SAFETY_SECONDS = 60
"""Only so that a broken program fails a test instead of hanging it; nothing is measured by it."""


def wait_until(
    condition: Callable[[], Value],
    what: str,
    seconds: float = SAFETY_SECONDS,
    give_up: Callable[[], str | None] = lambda: None,
) -> Value:
    """Returns the first true value of `condition`. `give_up` tells why waiting has become pointless."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if reason := give_up():
            raise AssertionError(f"waited for {what}, but {reason}")
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}; last seen: {value!r}")
        time.sleep(0.02)
