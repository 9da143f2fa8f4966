"""Fixtures of the end-to-end tests."""

from collections.abc import Callable, Iterator

import pytest

from harness import mlserver
from harness.kafka import Kafka, Unavailable
from harness.mlserver import Digits
from harness.stack import Stack


@pytest.fixture
def show(capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a measured number into the report of a passing run too."""

    def print_it(text: str) -> None:
        with capfd.disabled():
            print(f"\n    {request.node.name}: {text}", end="", flush=True)

    return print_it


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A control plane and one router with two workers, without rules. One for each test module."""
    with Stack(tmp_path_factory.mktemp("stack")) as stack:
        yield stack


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Digits]:
    """Two MLServers with two versions of one real model. They start once for all tests that need them."""
    if reason := mlserver.why_unavailable():
        pytest.skip(reason)
    with Digits(tmp_path_factory.mktemp("mlserver")) as digits:
        yield digits


@pytest.fixture(scope="session")
def _kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    try:
        yield kafka.start()
    except Unavailable as error:
        pytest.skip(str(error))
    finally:
        kafka.stop()


@pytest.fixture
def kafka(_kafka: Kafka) -> Kafka:
    """A real broker that serves, also after a test that killed it. One for all tests."""
    return _kafka.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Shows the ends of all logs where a test has failed."""
    report = yield
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.failed and stack is not None:
        for name, tail in stack.log_tails():
            report.sections.append((f"log of {name}", tail))
    return report
