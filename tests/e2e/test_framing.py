"""HTTP/1.1 both ways, byte by byte: what a client sends is what a model gets, and back."""

import json
import subprocess
import threading
from collections.abc import Iterator

import pytest

from harness import rules
from harness.raw import RawConnection
from harness.scripted import Delivery, ScriptedModel, response
from harness.stack import Stack

OBJECTIVE = "FRAME_THINGS"


def script(delivery: Delivery) -> Iterator[bytes] | bytes:
    """Echoes a body with Content-Length; the path asks for anything else."""
    if delivery.target == "/chunked":
        chunks = (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (b"first ", b"second ", b"third"))
        return iter([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n"])
    if delivery.target == "/no-content":
        return b"HTTP/1.1 204 No Content\r\n\r\n"
    if delivery.target == "/not-modified":
        return b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 1234\r\n\r\n'
    if delivery.method == "HEAD":
        return b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"
    return response(delivery.body, headers=(("Content-Type", "application/json"),))


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script) as model:
        yield model


@pytest.fixture(scope="module", autouse=True)
def _applied(stack: Stack, model: ScriptedModel) -> None:
    stack.apply(rules.one_model(OBJECTIVE, model.address))


@pytest.fixture
def connection(stack: Stack) -> Iterator[RawConnection]:
    with RawConnection(stack.router.port) as connection:
        yield connection


def head(method: str, target: str, *lines: str) -> bytes:
    fields = [f"{method} {target} HTTP/1.1", "Host: router.test", f"x-switchboard-objective: {OBJECTIVE}", *lines]
    return "\r\n".join([*fields, "", ""]).encode()


def test_a_body_with_content_length_goes_both_ways_byte_for_byte(connection, model):
    body = b'{"a" : [1.0, 990000000262240065, 1e400, "\xc3\xa9"],  "b":{} }'
    connection.send(head("POST", "/echo?x=%2F", f"Content-Length: {len(body)}") + body)
    answer = connection.read_response()
    assert (answer.status, answer.body) == (200, body)
    delivery = model.deliveries[-1]
    assert (delivery.target, delivery.body) == ("/echo?x=%2F", body)
    assert delivery.header("content-length") == str(len(body))


def test_a_chunked_body_goes_up_whole(connection, model):
    connection.send(head("POST", "/echo", "Transfer-Encoding: chunked"))
    for piece in (b"5\r\nhello\r\n", b"1;note=x\r\n \r\n", b"5\r\nworld\r\n", b"0\r\n\r\n"):
        connection.send(piece)
    assert connection.read_response().body == b"hello world"
    delivery = model.deliveries[-1]
    assert delivery.body == b"hello world"
    framing = (delivery.header("content-length"), delivery.header("transfer-encoding"))
    assert framing in [("11", None), (None, "chunked")], "one framing, never both"


def test_a_chunked_response_comes_down_whole(connection):
    connection.send(head("GET", "/chunked"))
    answer = connection.read_response()
    assert (answer.status, answer.body) == (200, b"first second third")


def test_head_has_the_length_and_no_body(connection):
    connection.send(head("HEAD", "/echo"))
    answer = connection.read_response(has_body=False)
    assert (answer.status, answer.headers["content-length"]) == (200, "1234")
    connection.send(head("POST", "/echo", "Content-Length: 4") + b"next")
    assert connection.read_response().body == b"next", "nothing of a body stood between"


@pytest.mark.parametrize(("target", "status"), [("/no-content", 204), ("/not-modified", 304)])
def test_a_status_without_body_leaves_the_connection_in_step(connection, target, status):
    connection.send(head("GET", target))
    assert connection.read_response().status == status
    connection.send(head("POST", "/echo", "Content-Length: 4") + b"next")
    assert connection.read_response().body == b"next"


def test_pipelined_requests_are_answered_in_order(connection):
    nonces = [f"nonce-{number}".encode() for number in range(20)]
    connection.send(b"".join(head("POST", "/echo", f"Content-Length: {len(nonce)}") + nonce for nonce in nonces))
    assert [connection.read_response().body for _ in nonces] == nonces


def test_a_client_that_expects_100_gets_it_before_it_sends(connection):
    connection.send(head("POST", "/echo", "Content-Length: 7", "Expect: 100-continue"))
    assert connection.read_head().status == 100
    connection.send(b"patient")
    assert connection.read_response().body == b"patient"


def test_curl_sends_a_large_body_with_expect_100(stack, model, tmp_path):
    body = json.dumps({"k": "x" * 2_000_000}).encode()
    (tmp_path / "body").write_bytes(body)
    deliveries = len(model.deliveries)
    done = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--fail", "--max-time", "60",
            "--header", f"x-switchboard-objective: {OBJECTIVE}",
            "--header", "Expect: 100-continue",
            "--data-binary", f"@{tmp_path / 'body'}",
            f"{stack.router.url}/echo",
        ],
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == body
    assert len(model.deliveries) == deliveries + 1


def test_no_byte_is_held_back(stack):
    """A piece reaches the client before the model has sent the next: the model waits for the client."""
    pieces = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]
    may_go_on = threading.Semaphore(0)

    def streaming(_: Delivery) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        for piece in pieces:
            yield b"%x\r\n%s\r\n" % (len(piece), piece)
            assert may_go_on.acquire(timeout=30), "the client never got the piece"
        yield b"0\r\n\r\n"

    with ScriptedModel(streaming) as model:
        stack.apply(rules.one_model("STREAM_THINGS", model.address))
        with RawConnection(stack.router.port) as connection:
            connection.send(head("GET", "/v1/objectives/STREAM_THINGS/stream").replace(b"FRAME", b"STREAM"))
            assert connection.read_head().status == 200
            for piece in pieces:
                assert connection.read_chunk() == piece
                may_go_on.release()
            assert connection.read_chunk() == b""
