"""The control plane as its users meet it: refusals of rules and of routers, the command line, the token."""

import json
import time

import pytest
import requests

from harness import rules
from harness.control import Refused
from harness.scripted import ScriptedModel, response
from harness.stack import Stack

OBJECTIVE = "MANAGE_ME"


@pytest.fixture(scope="module")
def model():
    with ScriptedModel(lambda _: response(b"{}")) as model:
        yield model


@pytest.fixture(scope="module")
def version(stack: Stack, model) -> int:
    return stack.apply(rules.one_model(OBJECTIVE, model.address))


def test_a_bad_rule_file_is_refused_with_line_and_column(stack, version, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        "kind: Objective\n"
        "token: BAD_RULE\n"
        "default: only\n"
        "context:\n"
        '  country: { from: "header:x-country", type: string }\n'
        "arms:\n"
        "  only: { model: manage-me@1 }\n"
        "rules:\n"
        "  - { name: wrong, when: 'country > 5', arm: only }\n"
    )
    done = stack.control.run("apply", "-f", file)
    assert done.returncode != 0
    assert "bad.yaml:9:" in done.stderr
    assert "country" in done.stderr
    assert stack.router.version == version, "nothing was stored"


def test_a_model_that_is_not_ready_keeps_the_change_from_leaving(stack, version):
    unready = stack.start_upstream("unready")
    unready.behave(unready=True)
    documents = [
        rules.shard("shard-unready", unready.address),
        rules.model("unready@1", "shard-unready", validation={"ready": "/v2/health/ready"}),
        rules.objective("WAIT_FOR_ME", {"only": "unready@1"}, "only"),
    ]
    with pytest.raises(Refused) as refused:
        stack.apply(documents)
    assert refused.value.status == 422
    assert unready.address in str(refused.value)
    assert stack.router.version == version


def test_a_change_needs_the_token(stack, version):
    for headers in ({}, {"authorization": "Bearer wrong-wrong-wrong-wrong"}):
        answer = requests.post(f"{stack.control.url}/v1/rollback", json={}, headers=headers, timeout=30)
        assert answer.status_code == 401
    assert stack.router.version == version


def test_explain_agrees_with_the_router(stack, model):
    split = rules.split_rule({"one": 3000, "other": 3000}, salt="explained")
    documents = [
        *rules.one_model(OBJECTIVE, model.address),
        rules.objective("EXPLAIN_ME", {"one": "manage-me@1", "other": "manage-me@1"}, "other", [split]),
    ]
    stack.apply(documents)
    for number in range(100):
        user = f"u{number}"
        headers = {"x-switchboard-objective": "EXPLAIN_ME", "x-user-id": user}
        answer = requests.post(f"{stack.router.url}/x", b"{}", headers=headers, timeout=30)
        explained = stack.control.explain("EXPLAIN_ME", user)
        assert answer.headers["x-switchboard-arm"] == explained["arm"]
        assert answer.headers["x-switchboard-reason"] == explained["reason"]


def test_an_export_is_the_same_content_again(stack, version, tmp_path):
    exported = stack.control.run("export", check=True).stdout
    file = tmp_path / "exported.yaml"
    file.write_text(exported)
    plan = json.loads(stack.control.run("plan", "--prune", "--json", "-f", file, check=True).stdout)
    assert (plan["objects"], plan["experiments"]) == ([], [])


def test_a_router_that_refuses_is_shown_and_holds_nobody_hostage(stack, model, show):
    """It trusts another key. All or none: no router activates what one of them refuses."""
    stranger = "switchboard-public-1 d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    before = stack.apply(rules.one_model(OBJECTIVE, model.address))
    sceptic = stack.start_router("sceptic", trusted_keys=[stranger])
    try:
        documents = [*rules.one_model(OBJECTIVE, model.address), *rules.one_model("NEVER_SEEN", model.address)]
        stack.wait_for_standing(sceptic, "refused")
        with pytest.raises(Refused) as refused:
            stack.control.apply(documents)
        assert refused.value.status == 409
        assert stack.router.version == before
        (status,) = (one for one in stack.control.status()["routers"] if one["router"] == "sceptic")
        show(f"status of the refusing router: {status['standing']}, {status['refusal']['reason']}")
        assert status["refusal"]["reason"] == "unknown_key"
        assert "unknown_key" in stack.control.run("status").stdout

        refusals = sceptic.metrics().total("switchboard_snapshot_refusals_total")
        time.sleep(3)  # absence of a loop has no condition to wait for
        assert sceptic.metrics().total("switchboard_snapshot_refusals_total") == refusals, "pushed in a loop"
    finally:
        sceptic.stop()
