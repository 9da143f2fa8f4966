"""What all Python tests share: `bucketing` and `harness` can be imported."""

import sys
from pathlib import Path

_TESTS = Path(__file__).parent
sys.path[:0] = [str(_TESTS), str(_TESTS / "e2e")]
