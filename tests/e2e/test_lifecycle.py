"""Starting, readiness, stopping, restarting: of routers and of the control plane."""

import threading
from collections.abc import Iterator

import pytest
import requests

from harness import rules
from harness.process import Process, binary
from harness.raw import RawConnection
from harness.scripted import Delivery, ScriptedModel, response
from harness.stack import Stack
from harness.traffic import ask_for_users
from harness.waiting import wait_until

OBJECTIVE = "LIVE_ON"  # a token is for ever, so every test goes on with what the others have left


def ask(router) -> requests.Response:
    return requests.get(f"{router.url}/x", headers={"x-switchboard-objective": OBJECTIVE}, timeout=30)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(lambda _: response(b"{}")) as model:
        yield model


def test_a_router_is_ready_only_with_a_snapshot(stack: Stack):
    router = stack.start_router("alone", pushed_to=False)
    assert router.is_alive()
    assert router.admin("/readyz").status_code == 503
    assert router.snapshot() is None
    answer = ask(router)
    assert answer.status_code == 503, "no Objective is known yet, and none is unknown"
    assert "retry-after" in answer.headers


def test_a_router_that_starts_later_gets_the_running_snapshot(stack: Stack, model):
    version = stack.apply(rules.one_model(OBJECTIVE, model.address))
    late = stack.start_router("late").wait_ready()
    late.wait_for_version(version)
    assert ask(late).status_code == 200


def test_a_router_whose_control_plane_is_gone_starts_from_disk(stack: Stack, model):
    version = stack.apply(rules.one_model(OBJECTIVE, model.address))
    stack.control.kill()
    try:
        stack.router.restart().wait_ready()
        assert stack.router.version == version
        assert ask(stack.router).status_code == 200
        stack.router.kill()
        stack.router.start().wait_ready()
        assert (stack.router.version, ask(stack.router).status_code) == (version, 200)
    finally:
        stack.control.start()


def test_a_control_plane_that_restarts_goes_on_where_it_was(stack: Stack, model):
    before = stack.apply(rules.one_model(OBJECTIVE, model.address))
    stack.control.kill()
    stack.control.start()
    wait_until(lambda: stack.standing_of(stack.router) == "current", "the router to be connected again")
    assert stack.router.version == before
    after = stack.apply([*rules.one_model(OBJECTIVE, model.address), *rules.one_model("NEW_GOAL", model.address)])
    assert after > before
    assert stack.router.version == after


def test_a_rollback_is_a_newer_version_with_the_older_content(stack: Stack, model, show):
    old = stack.apply(rules.one_model(OBJECTIVE, model.address))
    old_digest = stack.router.snapshot()["digest"]
    new = stack.apply([*rules.one_model(OBJECTIVE, model.address), *rules.one_model("SHORT_LIVED", model.address)])
    assert stack.router.snapshot()["digest"] != old_digest
    back = stack.rollback(old)
    assert back > new > old
    assert stack.router.version == back
    assert stack.router.snapshot()["digest"] == old_digest
    show(f"version {old}, then {new}; rolled back as version {back} with the digest of {old}")


def test_sigterm_lets_requests_finish_and_refuses_new_ones(stack: Stack):
    may_finish = threading.Event()

    def slow_stream(_: Delivery) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
        assert may_finish.wait(30)
        yield b"4\r\nlast\r\n0\r\n\r\n"

    with ScriptedModel(slow_stream) as model:
        stack.apply(rules.one_model("DRAIN_ME", model.address))
        router = stack.start_router("draining", drain={"wait": "1s", "max": "30s"}).wait_ready()
        with RawConnection(router.port) as connection, RawConnection(router.port) as idle:
            connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nx-switchboard-objective: DRAIN_ME\r\n\r\n")
            assert connection.read_head().status == 200
            assert connection.read_chunk() == b"first"

            router.ask_to_stop()
            router.process.wait_until(lambda: not router.is_ready(), "readiness to go first")
            assert router.is_alive(), "alive while it drains"
            assert idle.is_closed(), "an idle connection is closed"
            assert turns_away(router.port)

            may_finish.set()
            assert connection.read_chunk() == b"last"
            assert connection.read_chunk() == b""
        assert router.process.wait() == 0


def turns_away(port: int) -> bool:
    """Whether a new connection is refused, or ends without an answer."""
    try:
        with RawConnection(port) as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            return connection.is_closed()
    except OSError:
        return True


def test_a_drained_router_ends_with_success_under_load(stack: Stack, model):
    stack.apply(rules.one_model(OBJECTIVE, model.address))
    router = stack.start_router("loaded").wait_ready()
    ask_for_users(router.port, OBJECTIVE, [f"u{number}" for number in range(500)])
    assert router.stop() == 0


def test_a_bad_setting_is_refused_with_its_place(tmp_path):
    config = tmp_path / "router.toml"
    config.write_text("[cores]\nworkers = 2\nworkerz = 3\n")
    process = Process("router", [binary("switchboard-router"), "--config", config], tmp_path / "log")
    assert process.wait() != 0
    assert "router.toml:3" in process.log_tail()
    assert "workerz" in process.log_tail()


def test_a_taken_port_is_named(stack: Stack, model, tmp_path):
    arguments = ["--listen", model.address, "--admin-listen", "127.0.0.1:0"]
    folders = ["--state-dir", tmp_path / "state", "--socket", tmp_path / "socket"]
    keys = ["--trusted-key", stack.control.public_key]
    process = Process("router", [binary("switchboard-router"), *arguments, *folders, *keys], tmp_path / "log")
    assert process.wait() != 0
    assert model.address in process.log_tail()
