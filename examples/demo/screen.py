"""What the demo prints: steps, the commands that a user would type, claims with ✓ or ✗, tables."""

import os
import sys
import time


class BrokenError(Exception):
    """A claim failed that the rest of the demo depends on."""


class Screen:
    """Prints, and remembers whether every claim held."""

    def __init__(self):
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._colour = colour
        self._steps = 0
        self._held = 0
        self._failed = []
        self._started = time.monotonic()

    def step(self, text):
        self._steps += 1
        self._line("")
        self._line(self._paint("1", f"{self._steps}  {text}"))

    def command(self, words):
        self._line(self._paint("2", "   $ " + " ".join(map(str, words))))

    def note(self, text):
        for line in text.splitlines():
            self._line("   " + line)

    def claim(self, holds, text, essential=False):
        """Prints whether `text` is true. The demo goes on after a failure, unless it is essential."""
        if holds:
            self._held += 1
            self._line(f"   {self._paint('32', '✓')} {text}")
            return
        self._failed.append(text)
        self._line(f"   {self._paint('31', '✗')} {self._paint('31', text)}")
        if essential:
            raise BrokenError(text)

    def require(self, holds, text, child):
        """Says nothing where `text` is true; else ends the demo with the last lines of a program's log."""
        if not holds:
            self.note(child.log_tail())
            self.claim(False, text, essential=True)

    def table(self, head, rows):
        """Text to the left, numbers (anything that has a digit in its last row) to the right."""
        rows = [[str(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        to_right = [any(character.isdigit() for character in cell) and at > 1 for at, cell in enumerate(rows[-1])]

        def line(cells):
            padded = (
                cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(cells, widths, to_right)
            )
            return "   " + "  ".join(padded).rstrip()

        self._line(self._paint("2", line(head)))
        for row in rows:
            self._line(line(row))

    def verdict(self, folder):
        """The last line, and the exit code."""
        seconds = time.monotonic() - self._started
        self._line("")
        if self._failed:
            total = self._held + len(self._failed)
            self._line(self._paint("1;31", f"{len(self._failed)} of {total} claims did not hold ({seconds:.0f} s)."))
            self._line(f"Logs: {folder}")
            return 1
        self._line(self._paint("1;32", f"All {self._held} claims held ({seconds:.0f} s)."))
        return 0

    def _paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self._colour else text

    def _line(self, text):
        print(text, flush=True)
