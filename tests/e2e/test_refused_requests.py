"""What bad input gets: the right status, a problem document, and nothing at any model."""

import pytest
import requests

from harness import rules
from harness.raw import RawConnection
from harness.scripted import ScriptedModel, response
from harness.stack import Stack

BODY_BYTES_MAX = 10 * 1024


@pytest.fixture(scope="module")
def model():
    with ScriptedModel(lambda _: response(b"{}")) as model:
        yield model


@pytest.fixture(scope="module", autouse=True)
def _applied(stack: Stack, model: ScriptedModel) -> None:
    from_body = {"user_id": {"from": "body:/user", "type": "string"}}
    stack.apply(
        [
            *rules.one_model("KNOWN", model.address, body_max="10KiB"),
            rules.objective("NEEDS_BODY", {"only": "known@1"}, "only", context=from_body),
        ]
    )


@pytest.fixture(autouse=True)
def _nothing_is_delivered(stack: Stack, model: ScriptedModel):
    """Around every test here; afterwards a good request still gets its answer (the canary)."""
    before = len(model.deliveries)
    yield
    assert len(model.deliveries) == before, model.deliveries[before:]
    canary = requests.post(f"{stack.router.url}/x", headers={"x-switchboard-objective": "KNOWN"}, timeout=30)
    assert canary.status_code == 200


def problem(response: requests.Response) -> dict:
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == response.status_code
    return document


def test_an_unknown_objective_is_404_and_named(stack):
    answer = requests.get(stack.router.url, headers={"x-switchboard-objective": "NO_SUCH_GOAL"}, timeout=30)
    assert answer.status_code == 404
    assert "NO_SUCH_GOAL" in str(problem(answer))


def test_unknown_objectives_do_not_make_new_metrics(stack):
    for number in range(50):
        requests.get(stack.router.url, headers={"x-switchboard-objective": f"INVENTED_{number}"}, timeout=30)
    assert "INVENTED" not in stack.router.admin("/metrics").text


def test_a_request_without_objective_is_refused(stack):
    answer = requests.get(f"{stack.router.url}/anything", timeout=30)
    assert answer.status_code in (400, 404)
    problem(answer)


@pytest.mark.parametrize(
    ("body", "byte"),
    [(b'{"user": }', 9), (b'{"user": "u1"', 13), (b"", 0), (b'["user" "u1"]', 8)],
)
def test_a_body_that_is_no_json_is_400_with_the_byte(stack, body, byte):
    headers = {"x-switchboard-objective": "NEEDS_BODY", "content-type": "application/json"}
    answer = requests.post(f"{stack.router.url}/x", data=body, headers=headers, timeout=30)
    assert answer.status_code == 400
    assert f"byte {byte}" in problem(answer)["detail"], answer.text


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_413(stack, chunked):
    body = b"x" * (BODY_BYTES_MAX + 1)
    answer = requests.post(
        f"{stack.router.url}/x",
        data=iter([body[:5000], body[5000:]]) if chunked else body,
        headers={"x-switchboard-objective": "KNOWN"},
        timeout=30,
    )
    assert answer.status_code == 413
    problem(answer)


def test_a_head_over_the_limit_is_431(stack):
    headers = {"x-switchboard-objective": "KNOWN", "x-large": "x" * 100_000}
    answer = requests.get(stack.router.url, headers=headers, timeout=30)
    assert answer.status_code == 431
    problem(answer)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\tX-B: 2\r\n\r\n",
    ],
    ids=["garbage", "both framings", "two lengths", "blank before colon", "no host", "two hosts", "folded"],
)
def test_malformed_http_is_400_and_the_connection_ends(stack, request_bytes):
    with RawConnection(stack.router.port) as connection:
        connection.send(request_bytes.replace(b"Host: a\r\n", b"Host: a\r\nx-switchboard-objective: KNOWN\r\n", 1))
        answer = connection.read_response()
        assert answer.status == 400
        assert connection.is_closed()
