"""The gate: a Model that cannot prove itself never gets one client request, and nobody notices that it tried."""

import json
import threading
import time
from pathlib import Path

import pytest

from harness import rules
from harness.control import Refused
from harness.mlserver import Digits, inference_request
from harness.scripted import Delivery, ScriptedModel, response
from harness.stack import Stack
from harness.traffic import BackgroundLoad
from harness.waiting import wait_until

OBJECTIVE = "READ_DIGIT_GATED"
PATH = "/v2/models/digits/infer"


def answers(digit: int, after_seconds: float = 0.0):
    """A model that reads every picture as this digit."""

    def script(delivery: Delivery) -> bytes:
        time.sleep(after_seconds)
        return response(json.dumps({"outputs": [{"data": [digit]}]}).encode())

    return script


def served_by(version: str, address: str, validation: dict) -> list[rules.Document]:
    return [
        rules.shard(f"gated-{version}", address),
        rules.model(f"gated@{version}", f"gated-{version}", path=PATH, validation=validation),
        rules.objective(OBJECTIVE, {"only": f"gated@{version}"}, "only"),
    ]


def golden(body: bytes, digit: int) -> list[dict]:
    return [{"path": PATH, "body": body.decode(), "expect": {"/outputs/0/data/0": digit}}]


def refusal(stack: Stack, documents: list[rules.Document]) -> str:
    with pytest.raises(Refused) as refused:
        stack.control.apply(documents)
    assert refused.value.status == 422
    return refused.value.problem["report"]["reason"]


def client_requests(model: ScriptedModel) -> list[Delivery]:
    return [one for one in model.deliveries if one.header("user-agent") != "switchboard-control"]


def test_only_what_passes_its_golden_inferences_in_time_gets_clients(stack: Stack, show):
    body = b'{"inputs": []}'
    right = {"golden": golden(body, 7), "latency": {"requests": 40, "concurrency": 4, "p99_max": "150ms"}}
    with (
        ScriptedModel(answers(7)) as good,
        ScriptedModel(answers(3)) as wrong,
        ScriptedModel(answers(7, after_seconds=0.2)) as slow,
        ScriptedModel(lambda _: response(b"loading", "503 Service Unavailable")) as unready,
    ):
        first = stack.apply(served_by("v1", good.address, right))
        assert len(good.deliveries) == 1 + 40, "one golden inference, then those that are timed"
        assert {one.body for one in good.deliveries} == {body}
        with BackgroundLoad(stack.router.port, OBJECTIVE) as load:
            reasons = {
                version: refusal(stack, served_by(version, model.address, right))
                for version, model in {"v3": wrong, "v4": slow, "v5": unready}.items()
            }
        load.assert_all_succeeded()
        show(f"{load.count} requests; {reasons}")
        assert "/outputs/0/data/0 is 3, not 7" in reasons["v3"]
        assert "p99 is over 150 ms" in reasons["v4"]
        assert "503 Service Unavailable instead of 200" in reasons["v5"]
        assert [client_requests(model) for model in (wrong, slow, unready)] == [[], [], []]
        assert len(wrong.deliveries) == 1, "the first wrong answer ends it"
        assert stack.router.version == first

        # What has proved itself is not asked again when other rules change.
        asked = len(good.deliveries) - load.count
        stack.apply([rules.objective(OBJECTIVE, {"only": "gated@v1"}, "only", idempotent=True)])
        assert len(good.deliveries) - load.count == asked


def test_a_real_model_is_held_to_what_it_answered_before(stack: Stack, digits: Digits):
    heavy = digits.servers["heavy"]
    picture = digits.inputs[0]
    body = inference_request(0, picture["pixels"])
    seen = heavy.ask(body)["outputs"][0]["data"][0]
    good = {"ready": "/v2/health/ready", "golden": golden(body, seen), "latency": {"requests": 10, "p99_max": "30s"}}
    bad = {**good, "golden": golden(body, (seen + 1) % 10)}
    detail = refusal(stack, served_by("mlserver-bad", heavy.address, bad))
    assert f"/outputs/0/data/0 is {seen}, not {(seen + 1) % 10}" in detail
    stack.apply(served_by("mlserver-good", heavy.address, good))


# --- After the activation ---


def test_an_arm_that_starts_to_fail_is_taken_back_by_itself(tmp_path: Path, show):
    is_failing = threading.Event()
    served = 0

    def fails_later(_: Delivery) -> bytes:
        nonlocal served
        served += 1
        if is_failing.is_set() and served % 5 == 0:
            return response(b"{}", "500 Internal Server Error")
        return response(b"{}")

    stack = Stack(tmp_path)
    stack.control.flags = ["--bake-seconds=120", "--bake-requests-min=50"]
    with stack, ScriptedModel(lambda _: response(b"{}")) as good, ScriptedModel(fails_later) as worse:
        first = stack.apply(served_by("before", good.address, {"ready": "/ready"}))
        second = stack.apply(served_by("after", worse.address, {"ready": "/ready"}))
        with BackgroundLoad(stack.router.port, OBJECTIVE):
            wait_until(lambda: served > 200, "the new version to serve")
            assert stack.router.version == second, "as long as all is well it stays"
            is_failing.set()
            failing_since = time.monotonic()
            wait_until(lambda: stack.router.version == second + 1, "the rollback")
            took = time.monotonic() - failing_since
        record = stack.control.version(second)
        assert record["state"] == "RolledBack"
        breach = next(one for one in record["evidence"] if one["subject"] == "watch")
        assert not breach["passed"]
        assert f"{OBJECTIVE}/only" in breach["detail"]
        restored = stack.control.version(second + 1)
        assert (restored["actor"], restored["restores"]) == ("watch", first)
        show(f"taken back {took:.1f} s after a fifth of its answers began to fail: {breach['detail']}")


def test_what_keeps_its_limits_stays_and_says_so(tmp_path: Path):
    stack = Stack(tmp_path)
    stack.control.flags = ["--bake-seconds=3", "--bake-requests-min=10"]
    with stack, ScriptedModel(lambda _: response(b"{}")) as good:
        version = stack.apply(served_by("v1", good.address, {"ready": "/ready"}))
        with BackgroundLoad(stack.router.port, OBJECTIVE):
            wait_until(lambda: _watched(stack, version) is not None, "the watch to end")
        watched = _watched(stack, version)
        assert watched["passed"]
        assert "0 failed, 0 fell out" in watched["detail"]
        assert stack.control.version(version)["state"] == "Active"


def _watched(stack: Stack, version: int) -> dict | None:
    evidence = stack.control.version(version)["evidence"]
    return next((one for one in evidence if one["subject"] == "watch"), None)
