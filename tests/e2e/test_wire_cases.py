"""Failure cases that users of other proxies met, on the wire: the client's bytes in, the model's bytes out.

Ids are those of docs/cases.md. Around each case the canary: a plain request on a new connection gets its own answer.
"""

import contextlib
import itertools
import json
from collections.abc import Iterator

import pytest

from harness import rules
from harness.raw import RawConnection
from harness.scripted import Delivery, ScriptedModel, response
from harness.stack import Stack

OBJECTIVE = "WIRE_CASES"
LIMITED = "WIRE_LIMITED"
FROM_BODY = "WIRE_FROM_BODY"
J = b'{"k":10}'
N = b"%d" % len(J)
X = b"%x" % len(J)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
nonces = itertools.count(1)


def script(delivery: Delivery) -> bytes:
    """Echoes; `x-case` asks for a whole answer in the test's own bytes."""
    case = delivery.header("x-case")
    return bytes.fromhex(case) if case else response(delivery.body)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script) as model:
        yield model


@pytest.fixture(scope="module", autouse=True)
def _applied(stack: Stack, model: ScriptedModel) -> None:
    country = {"country": {"from": "body:/context/country", "type": "string"}}
    stack.apply(
        [
            *rules.one_model(OBJECTIVE, model.address),
            rules.objective(LIMITED, {"only": "wire-cases@1"}, "only", body_max="10KiB"),
            rules.objective(FROM_BODY, {"only": "wire-cases@1"}, "only", context=country),
        ]
    )


@pytest.fixture(autouse=True)
def deliveries(stack: Stack, model: ScriptedModel) -> Iterator[list[Delivery]]:
    """What this case alone delivered; afterwards the canary."""
    model.deliveries.clear()
    yield model.deliveries
    assert stack.router.is_alive()
    nonce = b"nonce-%d" % next(nonces)
    with RawConnection(stack.router.port) as canary:
        canary.send(head(b"Content-Length: %d\r\n" % len(nonce)) + nonce)
        answer = canary.read_response()
    assert (answer.status, answer.body) == (200, nonce), "the canary got another's answer"


def head(lines: bytes = b"", start: bytes = b"POST /v1/predict HTTP/1.1", objective: str = OBJECTIVE) -> bytes:
    """A head whose last header lines are `lines`, with the empty line that ends it."""
    named = b"x-switchboard-objective: %s\r\n" % objective.encode()
    return start + b"\r\nHost: router.test\r\nContent-Type: application/json\r\n" + named + lines + b"\r\n"


def assert_refused(stack: Stack, request: bytes, *statuses: int, ends: bool = False) -> None:
    """4xx, the connection closed, and nothing behind it read as a request."""
    with RawConnection(stack.router.port) as connection:
        connection.send(request)
        if ends:
            connection.end_sending()
        answer = connection.read_response()
        assert answer.status in (statuses or (400,)), (request[:300], answer)
        assert answer.says_close, request[:300]
        assert connection.is_closed(), request[:300]


def exchange(stack: Stack, request: bytes):
    with RawConnection(stack.router.port) as connection:
        connection.send(request)
        return connection.read_response()


# --- Request framing ---


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    ],
)
def test_fr_01_length_and_encoding_are_refused(stack, deliveries, lines):
    assert_refused(stack, head(lines) + b"0\r\n\r\nG")
    assert deliveries == []


@pytest.mark.parametrize("length", [b"", b"Content-Length: 5\r\n"], ids=["alone", "with a length"])
@pytest.mark.parametrize(
    "coding",
    [
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: cow\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: \r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
    ],
)
def test_fr_02_what_is_not_plainly_chunked_is_refused(stack, deliveries, coding, length):
    assert_refused(stack, head(coding + length) + b"0\r\n\r\n", 400, 501)
    assert deliveries == []


def test_fr_02_a_tab_behind_chunked_is_a_blank(stack, deliveries):
    answer = exchange(stack, head(b"Transfer-Encoding: chunked\t\r\n") + X + b"\r\n" + J + b"\r\n0\r\n\r\n")
    assert (answer.status, answer.body) == (200, J)
    [delivery] = deliveries
    framing = (delivery.header("content-length"), delivery.header("transfer-encoding"))
    assert framing in [(N.decode(), None), (None, "chunked")], "one clean framing"
    assert_refused(stack, head(b"Transfer-Encoding: chunked\t\r\nContent-Length: 5\r\n") + b"0\r\n\r\n")


def test_fr_02_an_encoding_in_http_1_0_is_refused(stack, deliveries):
    assert_refused(stack, head(CHUNKED, start=b"POST / HTTP/1.0") + b"0\r\n\r\n")
    assert deliveries == []


@pytest.mark.parametrize(
    "value",
    [
        b"5, 5", b"+5", b"-1", b"5x", b"0x5", b"5 5", b"", b"5\x00", b"18446744073709551616", b"9223372036854775808",
        b"9" * 400, b"5\r\nContent-Length: 6", b"5\r\nContent-Length: 5",
    ],
)  # fmt: skip
def test_fr_03_a_length_that_is_repeated_or_malformed_is_refused(stack, deliveries, value):
    assert_refused(stack, head(b"Content-Length: " + value + b"\r\n") + b"hello")
    assert deliveries == []


def test_fr_03_a_length_over_the_limit_is_413_before_the_body(stack, deliveries):
    assert_refused(stack, head(b"Content-Length: 9223372036854775807\r\n"), 413)
    assert_refused(stack, head(b"Content-Length: 10241\r\n", objective=LIMITED), 413)
    assert deliveries == []


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 8\r\nTransfer-Encoding : chunked\r\n",
        b"Content-Length:\r\n 8\r\n",
        b"X-A: 1\r\n\tContent-Length: 3\r\nContent-Length: 8\r\n",
        b"X-A\t: 1\r\nContent-Length: 8\r\n",
    ],
)
def test_fr_04_blanks_before_colons_and_folded_lines_are_refused(stack, deliveries, lines):
    assert_refused(stack, head(lines) + J)
    assert deliveries == []


def test_fr_04_a_first_line_that_starts_with_a_blank_is_refused(stack, deliveries):
    assert_refused(stack, b"POST / HTTP/1.1\r\n Host: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n")
    assert deliveries == []


@pytest.mark.parametrize(
    "body",
    [
        X + b"\n" + J + b"\r\n0\r\n\r\n",
        X + b";a\nbb\r\n" + J + b"\r\n0\r\n\r\n",
        X + b";a=\nxx\r\n" + J + b"\r\n0\r\n\r\n",
        X + b"\r" + J + b"\r\n0\r\n\r\n",
        X + b"\r\n" + J + b"\n0\r\n\r\n",
        X + b"\r\n" + J + b"\r\n0\n\r\n",
    ],
)
@pytest.mark.parametrize("objective", [OBJECTIVE, FROM_BODY], ids=["streamed", "read whole"])
def test_fr_05_chunk_lines_end_in_cr_lf_only(stack, deliveries, body, objective):
    assert_refused(stack, head(CHUNKED, objective=objective) + body)
    assert deliveries == []


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"10000000000000005\r\nhello", [400]),
        (b"1000\r\n" + b"x" * 4096 + b"\r\nfffffffffffff000\r\n", [400, 413]),
        (b"ffffffffffffffff\r\n", [400, 413]),
        ((b"1;" + b"e" * 16384 + b"\r\nx\r\n") * 2, [400]),
        (b"-1\r\n", [400]),
        (b"0x1\r\nx\r\n", [400]),
        (b"\r\n", [400]),
    ],
    ids=["17 digits", "a sum that wraps", "all ones", "a flood of extensions", "negative", "prefixed", "none"],
)
@pytest.mark.parametrize("objective", [OBJECTIVE, FROM_BODY], ids=["streamed", "read whole"])
def test_fr_06_chunk_sizes_neither_overflow_nor_flood(stack, deliveries, body, statuses, objective):
    assert_refused(stack, head(CHUNKED, objective=objective) + body, *statuses)
    assert deliveries == []


def test_fr_06_a_chunk_line_that_stops_frees_its_connection(stack, deliveries):
    assert_refused(stack, head(CHUNKED) + b"4\r", ends=True)
    assert deliveries == []


def test_fr_07_trailers_carry_nothing_into_the_head(stack, deliveries):
    trailers = b"Content-Length: 100\r\nHost: evil\r\nX-Forwarded-For: 6.6.6.6\r\nTransfer-Encoding: chunked\r\n"
    for objective in (OBJECTIVE, FROM_BODY):
        answer = exchange(
            stack, head(CHUNKED, objective=objective) + X + b"\r\n" + J + b"\r\n0\r\n" + trailers + b"\r\n"
        )
        assert (answer.status, answer.body) == (200, J)
    for delivery in deliveries:
        assert (delivery.header("host"), delivery.header("x-forwarded-for")) == ("router.test", None)
        assert delivery.body == J
    assert len(deliveries) == 2


@pytest.mark.parametrize("trailers", [b"nocolon\r\n\r\n", b"X-Bad : v\r\n\r\n", b"X-Long: " + b"t" * (1 << 20)])
def test_fr_07_malformed_or_endless_trailers_are_refused(stack, deliveries, trailers):
    with RawConnection(stack.router.port) as connection:
        connection.send(head(CHUNKED) + X + b"\r\n" + J + b"\r\n0\r\n")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before its end
            connection.send(trailers)
        answer = connection.read_response()
        assert answer.status in (400, 431)
        assert answer.says_close
    assert deliveries == []


@pytest.mark.parametrize(
    ("objective", "length", "status"), [("NO_SUCH_GOAL", 0, 404), (LIMITED, 20_000, 413)], ids=["404", "413"]
)
@pytest.mark.parametrize("together", [True, False], ids=["at once", "behind the head"])
def test_fr_08_a_body_left_unread_is_never_a_request(stack, deliveries, objective, length, status, together):
    smuggled = head(b"X-Probe: s\r\n", start=b"GET /smuggled HTTP/1.1").ljust(length)
    request = head(b"Content-Length: %d\r\n" % len(smuggled), objective=objective)
    with RawConnection(stack.router.port) as connection:
        connection.send(request + smuggled if together else request)
        answer = connection.read_response()
        assert answer.status == status
        if answer.says_close:
            assert connection.is_closed()
        else:
            connection.send((b"" if together else smuggled) + head(b"Content-Length: 4\r\n") + b"mine")
            assert connection.read_response().body == b"mine"
    assert [delivery.target for delivery in deliveries if delivery.target == "/smuggled"] == []


@pytest.mark.parametrize(
    "upgrade",
    [
        b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
    ],
    ids=["websocket", "h2c"],
)
def test_fr_09_an_upgrade_is_a_plain_request(stack, deliveries, upgrade):
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    with RawConnection(stack.router.port) as connection:
        connection.send(head(upgrade, start=b"GET /v1/x HTTP/1.1") + smuggled)
        assert connection.read_response().status == 200
        # The bytes behind it are a request of their own: judged as one, and this one names no Objective.
        assert connection.read_response().status == 400
    [delivery] = deliveries
    assert [delivery.header(name) for name in ("upgrade", "connection", "http2-settings")] == [None] * 3


def test_fr_09_an_unasked_101_is_a_502(stack, deliveries):
    switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nraw".hex()
    lines = b"Connection: Upgrade\r\nUpgrade: websocket\r\nX-Case: " + switching.encode() + b"\r\n"
    assert exchange(stack, head(lines, start=b"GET /v1/x HTTP/1.1")).status == 502
    assert len(deliveries) == 1


# --- Header fields and target ---


def test_ht_01_what_concerns_a_connection_stays_on_it(stack, deliveries):
    lines = (
        b"Connection: close, X-Internal-Tenant\r\nX-Internal-Tenant: t1\r\nConnection: X-Forwarded-For\r\n"
        b"X-Forwarded-For: 6.6.6.6\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n"
        b"Proxy-Authorization: Basic x\r\nX-Other: stays\r\nConnection: host, content-length, x-request-id\r\n"
    )
    answer = exchange(stack, head(lines + b"Content-Length: " + N + b"\r\n") + J)
    assert (answer.status, answer.says_close) == (200, True)
    [delivery] = deliveries
    for name in (
        "connection", "x-internal-tenant", "x-forwarded-for", "keep-alive", "proxy-connection", "te",
        "proxy-authorization",
    ):  # fmt: skip
        assert delivery.header(name) is None, name
    assert (delivery.header("host"), delivery.header("content-length")) == ("router.test", N.decode())
    assert (delivery.header("x-other"), delivery.body) == ("stays", J)
    assert delivery.header("x-request-id") == answer.headers["x-request-id"], "what we add cannot be named away"


def test_ht_02_a_host_is_there_once(stack, deliveries):
    named = b"x-switchboard-objective: %s\r\n\r\n" % OBJECTIVE.encode()
    for hosts in (b"", b"Host: a\r\nHost: b\r\n", b"Host: a\r\nHost: a\r\n", b"Host:\r\n"):
        assert_refused(stack, b"GET / HTTP/1.1\r\n" + hosts + named)
    assert deliveries == []
    assert exchange(stack, b"GET / HTTP/1.0\r\n" + named).status == 200
    [delivery] = deliveries
    assert len([name for name, _ in delivery.headers if name.lower() == "host"]) == 1


def test_ht_03_an_absolute_form_target_gives_the_host(stack, deliveries):
    assert exchange(stack, head(start=b"GET http://a.test:81/v1/predict?q HTTP/1.1")).status == 200
    assert (deliveries[-1].target, deliveries[-1].header("host")) == ("/v1/predict?q", "a.test:81")
    assert_refused(stack, head(start=b"GET ftp://a/ HTTP/1.1"))
    for host in (b"[::1]", b"[::1]:8080"):
        assert exchange(stack, head().replace(b"router.test", host)).status == 200
        assert deliveries[-1].header("host") == host.decode(), "with its brackets"
    assert len(deliveries) == 3


def test_ht_04_path_and_query_leave_byte_for_byte(stack, deliveries):
    targets = [
        "/v1/models/org%2Fname/predict?q=a%20b%2Bc&e=%C3%A9", "/v1//predict", "/v1/predict?x=%zz", "/a/../b/./c", "/?",
        "/%2e%2e/x", "/a;b=c?d??e",
    ]  # fmt: skip
    for target in targets:
        assert exchange(stack, head(start=b"GET %s HTTP/1.1" % target.encode())).status == 200
    assert [delivery.target for delivery in deliveries] == targets
    assert_refused(stack, head(start=b"GET /%s HTTP/1.1" % (b"p" * 16384)), 414)


def test_ht_05_opaque_values_pass_and_too_much_is_431(stack, model):
    with RawConnection(stack.router.port) as connection:
        connection.send(head(b"X-A: \xc3\xa9\xff\r\nX-Empty:\r\nX-Tab: a\tb\r\n", start=b"GET / HTTP/1.1"))
        assert connection.read_response().status == 200
    [delivery] = model.deliveries
    assert delivery.header("x-a").encode("latin-1") == b"\xc3\xa9\xff"
    assert (delivery.header("x-empty"), delivery.header("x-tab")) == ("", "a\tb")
    assert_refused(stack, head(b"".join(b"X-%d: 1\r\n" % number for number in range(101))), 431)
    assert_refused(stack, head(b"X-Long: " + b"v" * 65536 + b"\r\n"), 431)
    for control in (b"\x00", b"\r", b"\x0b", b"\x7f"):
        assert_refused(stack, head(b"X-A: a" + control + b"b\r\n"))
    assert len(model.deliveries) == 1


def test_ht_05_no_value_from_a_body_ends_a_header_line(stack, deliveries):
    body = json.dumps({"model": "objective/A\r\nX-Evil: 1", "context": {"country": "a\r\nX-Evil: 1"}}).encode()
    by_body = head(b"Content-Length: %d\r\n" % len(body), objective=FROM_BODY) + body
    for request in (by_body, by_body.replace(b"x-switchboard-objective: %s\r\n" % FROM_BODY.encode(), b"")):
        answer = exchange(stack, request)
        assert "x-evil" not in answer.headers
        assert b"X-Evil" not in answer.body.split(b"{")[0]
    assert all(delivery.header("x-evil") is None for delivery in deliveries)


def test_ht_05_a_legal_answer_with_many_lines_is_no_502(stack):
    links = b"".join(b"Link: </%d>; rel=\xc3\xa9\xff\r\n" % number for number in range(60))
    legal = b"HTTP/1.1 200 Tr\xe8s bien\r\n" + links + b"Content-Length: 2\r\n\r\nok"
    with ScriptedModel(lambda _: legal) as model:
        stack.apply(rules.one_model("WIRE_LINKS", model.address))
        answer = exchange(stack, head(start=b"GET / HTTP/1.1", objective="WIRE_LINKS"))
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["link"].encode("latin-1").endswith(b"rel=\xc3\xa9\xff")


# --- Message semantics ---


def test_ms_01_100_continue_is_ours_to_say(stack, deliveries):
    expects = b"Expect: 100-continue\r\nContent-Length: " + N + b"\r\n"
    for objective in (OBJECTIVE, FROM_BODY):
        with RawConnection(stack.router.port) as connection:
            connection.send(head(expects, objective=objective))
            assert connection.read_head().status == 100
            connection.send(J)
            answer = connection.read_response()
            assert (answer.status, answer.body) == (200, J), "and no second 100"
    answer = exchange(stack, head(expects) + J)
    assert (answer.status, answer.body) == (200, J), "who does not wait needs none"
    assert exchange(stack, head(expects, start=b"POST / HTTP/1.0") + J).status == 200
    assert [delivery.header("expect") for delivery in deliveries] == [None] * 4
    too_long = head(b"Expect: 100-continue\r\nContent-Length: 10241\r\n", objective=LIMITED)
    assert_refused(stack, too_long, 413)
    assert_refused(stack, head(b"Expect: something-else\r\nContent-Length: 0\r\n"), 417)
    assert len(deliveries) == 4


def test_ms_03_a_204_ends_at_its_head_whatever_its_fields_say(stack, deliveries):
    lies = b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"
    with RawConnection(stack.router.port) as connection:
        for _ in range(3):
            connection.send(head(b"X-Case: " + lies.hex().encode() + b"\r\n", start=b"GET / HTTP/1.1"))
            answer = connection.read_response()
            assert (answer.status, "transfer-encoding" in answer.headers) == (204, False)
    assert len(deliveries) == 3


@pytest.mark.parametrize("malformed", [b"BAD\r\n\r\n", head(b"Content-Length: +1\r\n") + b"x"])
def test_ms_05_pipelined_requests_are_answered_until_a_malformed_one(stack, deliveries, malformed):
    good = [head(b"Content-Length: 3\r\n") + body for body in (b"one", b"two")]
    with RawConnection(stack.router.port) as connection:
        connection.send(b"".join(good) + malformed + head(b"Content-Length: 5\r\n") + b"three")
        assert [connection.read_response().body for _ in good] == [b"one", b"two"]
        refused = connection.read_response()
        assert (refused.status, refused.says_close) == (400, True)
        assert connection.is_closed()
    assert [delivery.body for delivery in deliveries] == [b"one", b"two"]


# --- JSON bodies ---


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000 + b"]" * 100_000, b"[" * 100_000, b'{"a":' * 100_000, b'{"x":' + b"[" * 200 + b"]" * 200 + b"}"],
    ids=["closed", "unclosed", "objects", "within a member"],
)
def test_js_03_deep_nesting_is_refused(stack, deliveries, body):
    answer = exchange(stack, head(b"Content-Length: %d\r\n" % len(body), objective=FROM_BODY) + body)
    assert answer.status == 400
    assert json.loads(answer.body)["reason"] in ("json_too_deep", "json_malformed")
    assert deliveries == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"context":', b'{"context":{"country":5}}', b'{"context":{"country":{}}}', b'{"context":{"country":[true]}}',
        b'{"context":{"country":true}}', b'{"context":{"country":"%s"}}' % (b"x" * (1 << 20)), b"",
        b"\xff\xfe{\x00}\x00",
        b'{"context":{"country":"\xff"}}', b"{}{}", b'{"context":{"country":"a"},"context":{}}',
    ],
    ids=lambda body: repr(body[:40]),
)  # fmt: skip
def test_js_05_a_body_that_cannot_be_read_is_400_and_not_echoed(stack, deliveries, body):
    answer = exchange(stack, head(b"Content-Length: %d\r\n" % len(body), objective=FROM_BODY) + body)
    assert answer.status == 400, answer
    problem = json.loads(answer.body)
    assert problem["reason"].startswith(("json_", "attribute_"))
    assert len(answer.body) < 500, "no byte of the client's"
    assert deliveries == []


def test_js_05_a_byte_order_mark_is_taken_off(stack, deliveries):
    body = b'{"context":{"country":"DE"}}'
    marked = b"\xef\xbb\xbf" + body
    request = head(b"Content-Length: %d\r\n" % len(marked), objective=FROM_BODY) + marked
    assert exchange(stack, request).body == body
    assert deliveries[-1].header("content-length") == str(len(body))


@pytest.mark.parametrize("coding", [b"gzip", b"zstd", b"br"])
def test_js_06_a_compressed_body_passes_or_is_415(stack, deliveries, coding):
    body = b"\x1f\x8b\x08\x00not really"
    lines = b"Content-Encoding: " + coding + b"\r\nContent-Length: %d\r\n" % len(body)
    assert exchange(stack, head(lines) + body).body == body
    answer = exchange(stack, head(lines, objective=FROM_BODY) + body)
    assert answer.status == 415
    identity = b"Content-Encoding: identity\r\nContent-Length: 2\r\n"
    assert exchange(stack, head(identity, objective=FROM_BODY) + b"{}").status == 200
    assert len(deliveries) == 2


# --- Observability ---


def test_ob_01_no_client_chooses_a_label(stack):
    def series() -> set[str]:
        lines = stack.router.admin("/metrics").text.splitlines()
        return {line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#")}

    exchange(stack, head(start=b"GET /warm HTTP/1.1"))
    before = series()
    with RawConnection(stack.router.port) as connection:
        for number in range(500):
            start = b"FOO%d /random/%d HTTP/1.1" % (number, number)
            connection.send(head(b"x-switchboard-experiment: e%d\r\n" % number, start=start))
            assert connection.read_response().status == 200
            connection.send(head(start=b"GET / HTTP/1.1", objective=f"INVENTED_{number}"))
            assert connection.read_response().status == 404
    assert series() == before
