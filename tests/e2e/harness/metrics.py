"""Prometheus text, as the router's admin listener writes it."""

import re
from dataclasses import dataclass

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


class Metrics:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.samples = [
            Sample(match["name"], dict(_LABEL.findall(match["labels"] or "")), float(match["value"]))
            for line in text.splitlines()
            if line and not line.startswith("#")
            for match in [_SAMPLE.match(line)]
            if match or _refuse(line)
        ]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of this name that carry these labels; 0 where there is none."""
        return sum(sample.value for sample in self._matching(name, labels))

    def by_label(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Sums by the values of one label."""
        sums: dict[str, float] = {}
        for sample in self._matching(name, labels):
            if label in sample.labels:
                key = sample.labels[label]
                sums[key] = sums.get(key, 0) + sample.value
        return sums

    def _matching(self, name: str, labels: dict[str, str]):
        return (sample for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items())


def _refuse(line: str) -> bool:
    raise AssertionError(f"not Prometheus text: {line!r}")
