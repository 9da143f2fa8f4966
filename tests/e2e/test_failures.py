"""Model servers die; clients are answered."""

import threading
from collections.abc import Iterator

import pytest
import requests

from harness import rules
from harness.raw import RawConnection
from harness.scripted import Delivery, ScriptedModel, response
from harness.stack import Stack
from harness.traffic import BackgroundLoad, arms_of, ask_for_users
from harness.waiting import wait_until


def test_killing_one_of_two_endpoints_fails_no_idempotent_request(stack: Stack, show):
    doomed, survivor = stack.start_upstream("doomed"), stack.start_upstream("survivor")
    stack.apply(rules.one_model("SURVIVE_KILL", doomed.address, survivor.address, idempotent=True))
    with BackgroundLoad(stack.router.port, "SURVIVE_KILL", connections=8) as load:
        wait_until(lambda: load.count > 500, "load on both endpoints")
        doomed.kill()
        killed_at = load.count
        wait_until(lambda: load.count > killed_at + 1_000, "load after the kill")
    load.assert_all_succeeded()
    show(f"endpoint killed after {killed_at} of {load.count} requests: 0 failed")


def test_an_arm_whose_shard_is_down_falls_out_to_the_default_arm(stack: Stack, show):
    heavy, stable = stack.start_upstream("heavy"), stack.start_upstream("stable")
    everyone_heavy = rules.split_rule({"heavy": 10_000}, salt="fall-out")
    stack.apply(
        [
            rules.shard("fall-heavy", heavy.address),
            rules.shard("fall-stable", stable.address),
            rules.model("fall@heavy", "fall-heavy"),
            rules.model("fall@stable", "fall-stable"),
            rules.objective(
                "FALL_OUT",
                {"heavy": "fall@heavy", "stable": "fall@stable"},
                "stable",
                [everyone_heavy],
                idempotent=True,
            ),
        ]
    )
    users = [f"u{number}" for number in range(300)]
    assert set(arms_of(ask_for_users(stack.router.port, "FALL_OUT", users)).values()) == {"heavy"}
    heavy.kill()
    assert set(arms_of(ask_for_users(stack.router.port, "FALL_OUT", users)).values()) == {"stable"}
    headers = {"x-switchboard-objective": "FALL_OUT", "x-user-id": "u1"}
    answer = requests.post(f"{stack.router.url}/x", b"{}", headers=headers, timeout=30)
    show(f"reason after the Shard died: {answer.headers['x-switchboard-reason']}")
    assert answer.headers["x-switchboard-reason"] not in ("", "split")


def test_with_every_endpoint_down_the_answer_is_503_with_retry_after(stack: Stack):
    upstreams = [stack.start_upstream(name) for name in ("one", "two")]
    stack.apply(rules.one_model("ALL_DOWN", *(upstream.address for upstream in upstreams)))
    for upstream in upstreams:
        upstream.kill()
    headers = {"x-switchboard-objective": "ALL_DOWN", "x-user-id": "u1"}
    answer = requests.post(f"{stack.router.url}/x", b"{}", headers=headers, timeout=30)
    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1


def test_a_post_that_the_model_may_have_begun_is_not_sent_twice(stack: Stack):
    """Unless the Objective says that it is idempotent."""

    def dies_after_reading(_):
        raise ConnectionResetError

    def answers(_):
        return response(b"{}")

    with ScriptedModel(answers) as model:
        stack.apply(rules.one_model("ONCE_ONLY", model.address))
        model.script = dies_after_reading
        headers = {"x-switchboard-objective": "ONCE_ONLY"}
        answer = requests.post(f"{stack.router.url}/x", b"{}", headers=headers, timeout=30)
        assert answer.status_code in (502, 503)
        assert len(model.deliveries) == 1


@pytest.mark.parametrize("streams", [False, True], ids=["awaiting the first byte", "streaming"])
def test_a_client_that_goes_away_cancels_its_call(stack: Stack, streams):
    cancelled = threading.Event()

    def never_ends(delivery: Delivery) -> Iterator[bytes]:
        if streams:
            yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        delivery.wait_for_peer_to_close()
        cancelled.set()
        raise ConnectionResetError

    with ScriptedModel(never_ends) as model:
        stack.apply(rules.one_model("CANCEL_ME", model.address))
        with RawConnection(stack.router.port) as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nx-switchboard-objective: CANCEL_ME\r\n\r\n")
            wait_until(lambda: model.deliveries, "the request at the model")
            if streams:
                connection.read_head()
                assert connection.read_chunk() == b"hello"
        assert cancelled.wait(30), "the router still holds the call of a client that has gone"
