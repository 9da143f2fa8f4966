"""Runs the tests behind the failure cases of docs/cases.md, and says of each case whether it holds.

    tests/.venv/bin/python tests/cases.py [ID …]

The page is the list: under each id, what must hold, and the tests that hold it there. A case passes if all its tests
pass; it fails if one fails; it is missing if a line says what is not there yet, or if a test could not run here.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs/cases.md"

# How many cases each group has: none may be left out of the page.
GROUPS = {
    "FR": 9, "HT": 5, "MS": 8, "ST": 5, "UP": 5, "RS": 3, "JS": 6, "RD": 3, "KF": 3, "EX": 4, "CF": 4, "OB": 1,
}  # fmt: skip

PASSED = "passed"
FAILED = "failed"
MISSING = "missing"


class PageError(Exception):
    """The page is not of its form, or names what does not exist."""


@dataclass
class Case:
    id: str
    title: str
    tests: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """How one test ended: one of the three words, and why if it did not pass."""

    word: str
    why: str = ""


def read_page(text: str) -> list[Case]:
    """The cases in their order."""
    cases: list[Case] = []
    for line in text.splitlines():
        if heading := re.fullmatch(r"### (\S+) (.+)", line):
            cases.append(Case(*heading.groups()))
        elif test := re.fullmatch(r"- `((?:cargo|pytest):\S+)`", line):
            cases[-1].tests.append(test[1])
        elif missing := re.fullmatch(r"- missing: (.+)", line):
            cases[-1].missing.append(missing[1])
        elif line.startswith("- "):
            raise PageError(f"neither a test nor what is missing: {line}")
    expected = [f"{group}-{number:02}" for group, count in GROUPS.items() for number in range(1, count + 1)]
    if [case.id for case in cases] != expected:
        wrong = sorted({case.id for case in cases} ^ set(expected)) or "their order"
        raise PageError(f"the page does not have exactly the cases that there are: {wrong}")
    for case in cases:
        if not case.tests and not case.missing:
            raise PageError(f"{case.id} has neither a test nor a word on what is missing")
    return cases


def check_names(cases: Iterable[Case]) -> None:
    """That the sources have every named test. Reads them only, so that it needs no build."""
    for case in cases:
        for test in case.tests:
            if not _is_in_its_source(test):
                raise PageError(f"{case.id} names a test that does not exist: {test}")


def _is_in_its_source(test: str) -> bool:
    kind, rest = test.split(":", 1)
    if kind == "pytest":
        file, name = rest.split("::")
        return _has(REPOSITORY / file, rf"^def {name}\(")
    crate, target, path = rest.split(":", 2)
    *modules, name = path.split("::")
    if target == "lib":
        roots = [REPOSITORY / crate / "src"]
    else:
        roots = [REPOSITORY / crate / "tests" / target, REPOSITORY / crate / "tests"]
    files = [root / "/".join(modules[:depth]) for root in roots for depth in range(len(modules) + 1)]
    candidates = {file.with_suffix(".rs") for file in files} | {root / "main.rs" for root in roots}
    if target != "lib":
        candidates.add(REPOSITORY / crate / "tests" / f"{target}.rs")
    return any(_has(file, rf"^\s*fn {name}\(") for file in candidates)


def _has(file: Path, pattern: str) -> bool:
    return file.is_file() and re.search(pattern, file.read_text(), re.MULTILINE) is not None


def run(tests: Iterable[str]) -> dict[str, Outcome]:
    """Runs each test once."""
    by_binary: dict[tuple[str, str], list[str]] = {}
    by_node: dict[str, str] = {}
    for test in dict.fromkeys(tests):
        kind, rest = test.split(":", 1)
        if kind == "pytest":
            by_node[rest] = test
        else:
            crate, target, path = rest.split(":", 2)
            by_binary.setdefault((crate, target), []).append(path)
    outcomes: dict[str, Outcome] = {}
    binaries = _build_binaries() if by_binary else {}
    for (crate, target), paths in by_binary.items():
        found = _run_binary(binaries.get((crate, target)), REPOSITORY / crate, paths)
        outcomes |= {f"cargo:{crate}:{target}:{path}": outcome for path, outcome in found.items()}
    if by_node:
        found = _run_pytest(list(by_node))
        outcomes |= {test: found.get(node, Outcome(FAILED, "pytest did not run it")) for node, test in by_node.items()}
    return outcomes


def _build_binaries() -> Mapping[tuple[str, str], Path]:
    """The test binaries by crate folder and target; a library's unit tests are its target `lib`."""
    command = ["cargo", "test", "--workspace", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    binaries = {}
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        target = "lib" if "lib" in message["target"]["kind"] else message["target"]["name"]
        if "bin" in message["target"]["kind"]:
            continue
        binaries[Path(message["manifest_path"]).parent.name, target] = Path(message["executable"])
    return binaries


def _run_binary(binary: "Path | None", folder: Path, paths: list[str]) -> dict[str, Outcome]:
    if binary is None:
        return {path: Outcome(FAILED, "its test binary does not exist") for path in paths}
    # In the crate's folder, as `cargo test` does it.
    ran = subprocess.run([binary, "--exact", *paths], cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    print(ran.stdout, flush=True)
    words = dict(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", ran.stdout, re.MULTILINE))
    return {path: _outcome_of(words.get(path)) for path in paths}


def _outcome_of(word: "str | None") -> Outcome:
    if word == "ok":
        return Outcome(PASSED)
    if word == "ignored":
        return Outcome(MISSING, "the test is switched off")
    return Outcome(FAILED, "it failed" if word else "its binary does not have it, or died first")


class _Listener:
    """Hears from pytest how each test ended; a test with parameters is one, and the worst of them counts."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node = "tests/" + report.nodeid.split("[", 1)[0]
        before = self.outcomes.get(node, Outcome(PASSED))
        if report.failed:
            self.outcomes[node] = Outcome(FAILED, f"{report.when} failed")
        elif report.skipped and before.word != FAILED:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.outcomes[node] = Outcome(MISSING, why)
        elif report.when == "call":
            self.outcomes[node] = before


def _run_pytest(nodes: list[str]) -> dict[str, Outcome]:
    listener = _Listener()
    settings = ["-c", str(REPOSITORY / "tests/pytest.ini"), "--rootdir", str(REPOSITORY / "tests"), "-q"]
    pytest.main([*settings, *(str(REPOSITORY / node) for node in nodes)], plugins=[listener])
    return listener.outcomes


def judge(case: Case, outcomes: Mapping[str, Outcome]) -> Outcome:
    """A case is no better than its worst test, and never passes while something of it is missing."""
    of_tests = [(test, outcomes[test]) for test in case.tests]
    for test, outcome in of_tests:
        if outcome.word == FAILED:
            return Outcome(FAILED, f"{test}: {outcome.why}")
    if case.missing:
        return Outcome(MISSING, "; ".join(case.missing))
    for test, outcome in of_tests:
        if outcome.word == MISSING:
            return Outcome(MISSING, f"{test}: {outcome.why}")
    return Outcome(PASSED)


def main(ids: list[str]) -> int:
    cases = read_page(PAGE.read_text())
    check_names(cases)
    if unknown := set(ids) - {case.id for case in cases}:
        raise PageError(f"no such cases: {sorted(unknown)}")
    chosen = [case for case in cases if not ids or case.id in ids]
    outcomes = run(test for case in chosen for test in case.tests)
    verdicts = [(case, judge(case, outcomes)) for case in chosen]
    print()
    for case, verdict in verdicts:
        print(f"{verdict.word:8}{case.id}  {case.title}" + (f"\n        {verdict.why}" if verdict.why else ""))
    words = [verdict.word for _, verdict in verdicts]
    print(", ".join(f"{words.count(word)} {word}" for word in (PASSED, FAILED, MISSING)))
    return 1 if FAILED in words else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PageError as error:
        sys.exit(f"cases: {error}")
