"""`switchboard-control shadow-worker`: records of a real Kafka, replayed to models, and what is told about it."""

import json
import math
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from harness import rules
from harness.kafka import Kafka
from harness.mlserver import Digits, inference_request
from harness.ports import free_port
from harness.process import binary
from harness.scripted import Delivery, ScriptedModel, response
from harness.shadow import Result, Topics, record
from harness.stack import Stack

CANDIDATE = "digits@heavy"

REJOINS_AT_ONCE = "group.instance.id=only"
"""A worker that was killed is followed at once by one of the same name, and not after its session has run out."""


@pytest.fixture
def topics(kafka: Kafka, tmp_path: Path) -> Iterator[Topics]:
    topics = Topics(kafka, tmp_path, CANDIDATE)
    yield topics
    topics.kill()


def plain_records(count: int, first: int = 0) -> list[bytes]:
    return [
        record(number, b'{"n":%d}' % number, b'{"n":1}', candidate=CANDIDATE) for number in range(first, first + count)
    ]


def answer(_: Delivery) -> bytes:
    return response(b'{"n":1}')


def ids(results: list[Result]) -> Counter[str]:
    return Counter(one.id for one in results)


def expected_ids(count: int) -> set[str]:
    return {f"record-{number:06}" for number in range(count)}


# --- What it tells ---


def quantile(values: list[int], share: float) -> int:
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def test_the_report_on_real_models_is_what_python_computes(topics: Topics, digits: Digits, tmp_path: Path, show):
    """The primary is one version of the digits model, the candidate the other."""
    light, heavy = digits.servers["light"], digits.servers["heavy"]
    inputs = digits.inputs[:200]
    headers = {"content-type": "application/json"}
    session = requests.Session()
    records, primaries, spans = [], [], []
    for number, one in enumerate(inputs):
        body = inference_request(number, one["pixels"])
        primary = session.post(f"http://{light.address}{light.infer_path}", body, headers=headers, timeout=60)
        span = int(primary.elapsed.total_seconds() * 1e6)
        records.append(
            record(number, body, primary.content, candidate=CANDIDATE, first_byte_us=span, total_us=span + 50)
        )
        primaries.append(primary.json())
        spans.append(span)
    topics.produce(records)
    page = tmp_path / "report.html"
    report = topics.work(f"--endpoint={heavy.address}", "--compare=field:/outputs/0/data/0", f"--html={page}")

    results = {one.id: one for one in topics.results()}
    assert set(results) == expected_ids(len(inputs))
    direct = []
    for number, one in enumerate(inputs):
        body = inference_request(number, one["pixels"])
        asked = session.post(f"http://{heavy.address}{heavy.infer_path}", body, headers=headers, timeout=60)
        assert results[f"record-{number:06}"].body == asked.content, "the candidate got the client's bytes"
        direct.append(asked.json())
    same = sum(a["outputs"][0]["data"][0] == b["outputs"][0]["data"][0] for a, b in zip(primaries, direct))
    show(f"{same} of {len(inputs)} digits read alike; the report says {report['agreement']['rate']:.4f}")
    assert 0 < same < len(inputs), "two real models agree mostly, and not always"
    assert (report["agreement"]["same"], report["agreement"]["different"]) == (same, len(inputs) - same)
    assert report["agreement"]["rate"] == pytest.approx(same / len(inputs), abs=1e-12)
    assert report["records"]["answered"] == len(inputs)

    candidate_spans = [one.envelope["answer"]["first_byte_us"] for one in results.values()]
    for told, exact in [
        (report["latency"]["first_byte"]["primary"], spans),
        (report["latency"]["first_byte"]["candidate"], candidate_spans),
        (report["latency"]["total"]["primary"], [span + 50 for span in spans]),
    ]:
        assert told["count"] == len(exact)
        assert (told["min_us"], told["max_us"]) == (min(exact), max(exact))
        assert told["mean_us"] == pytest.approx(sum(exact) / len(exact))
        for name, share in [("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99)]:
            assert told[name] == pytest.approx(quantile(exact, share), rel=0.001), name

    worst = report["worst"]
    assert [one["distance"] for one in worst] == sorted((one["distance"] for one in worst), reverse=True)
    for one in worst:
        number = int(one["id"].removeprefix("record-"))
        difference = one["differences"][0]
        assert difference["pointer"] == "/outputs/0/data/0"
        assert int(difference["primary"]) == primaries[number]["outputs"][0]["data"][0]
        assert int(difference["candidate"]) == direct[number]["outputs"][0]["data"][0]
    assert topics.report() == report, "the stored results say the same"
    assert f"{same / len(inputs):.2%}".replace("%", " %") in page.read_text()


def test_json_is_compared_within_tolerances_as_python_does_it(topics: Topics, digits: Digits, show):
    heavy = digits.servers["heavy"]
    inputs = digits.inputs[:60]
    records, expected = [], 0
    for number, one in enumerate(inputs):
        body = inference_request(number, one["pixels"])
        asked = requests.post(
            f"http://{heavy.address}{heavy.infer_path}", body, headers={"content-type": "application/json"}, timeout=60
        ).json()
        # A primary that is another version, and off by a little more with each request.
        asked["model_version"] = "another"
        probabilities = asked["outputs"][1]["data"]
        off = number / len(inputs) * 0.1
        shifted = [value + off for value in probabilities]
        expected += all(abs(a - b) <= 0.05 for a, b in zip(probabilities, shifted))
        asked["outputs"][1]["data"] = shifted
        records.append(record(number, body, json.dumps(asked).encode(), candidate=CANDIDATE))
    topics.produce(records)
    report = topics.work(f"--endpoint={heavy.address}", "--absolute-tolerance=0.05", "--ignore=/model_version")
    show(f"{expected} of {len(inputs)} within the tolerance")
    assert 0 < expected < len(inputs)
    assert (report["agreement"]["same"], report["agreement"]["different"]) == (expected, len(inputs) - expected)
    assert report["compared_by"] == ["json"]


def test_what_cannot_be_compared_is_told_apart(topics: Topics):
    def odd(number: int, answer: bytes | None = b'{"n":1}', **changes: object) -> bytes:
        return record(number, b"{}", answer, candidate=CANDIDATE, **changes)

    topics.produce(
        [
            odd(0),
            odd(1, None),
            odd(2, status=500),
            odd(3, b"text"),
            odd(4, response={"body": "cut", "body_bytes_total": 900}),
            odd(5, b"", response={"body": "none"}),
            odd(6, response={"headers": [["content-encoding", "gzip"]]}),
            odd(7, b'{"n":2}'),
            odd(8, request={"body": "withheld"}),
        ]
    )
    with ScriptedModel(answer) as model:
        report = topics.work(f"--endpoint={model.address}")
    assert (report["agreement"]["same"], report["agreement"]["different"]) == (1, 1)
    assert report["agreement"]["not_comparable"] == {
        "primary_unanswered": 1,
        "primary_failed": 1,
        "primary_not_json": 1,
        "primary_cut": 1,
        "primary_not_captured": 1,
        "primary_encoded": 1,
    }
    assert report["records"]["not_replayed"] == 1
    assert report["records"]["reasons"] == {"body_withheld": 1}


# --- What the candidate gets ---


def test_the_candidate_gets_the_clients_bytes_marked_as_shadow_traffic(topics: Topics):
    body = b'{"model": "objective/READ_DIGIT" , "x":[1e400,0.10]}'
    place = [body.index(b'"objective'), body.index(b" , ")]
    facts = {"user_country": "DE"}
    topics.produce(
        [
            record(0, b'\x00raw\xff{"', b"", candidate=CANDIDATE, request={"target": "/v2/x?y=1"}),
            record(1, body, b"", candidate=CANDIDATE, request={"model_place": place}),
            record(2, b'{"parameters":{"user_country":"FR","k":1}}', b"", candidate=CANDIDATE, facts=facts),
            record(3, b"{}", b"", candidate="another@1"),
        ]
    )
    with ScriptedModel(answer) as model:
        report = topics.work(f"--endpoint={model.address}", "--served-name=digits-v2", "--facts-into=/parameters")
        got = {delivery.header("x-request-id"): delivery for delivery in model.deliveries}
    assert report["records"]["passed_over"] == 1, "for another candidate"
    assert set(got) == {"request-0", "request-1", "request-2"}
    assert {one.header("x-switchboard-traffic-class") for one in got.values()} == {"shadow"}
    assert (got["request-0"].method, got["request-0"].target) == ("POST", "/v2/x?y=1")
    assert got["request-0"].body == b'\x00raw\xff{"'
    assert got["request-0"].header("content-type") == "application/json"
    assert got["request-1"].body == b'{"model": "digits-v2" , "x":[1e400,0.10]}'
    assert json.loads(got["request-2"].body) == {"parameters": {"user_country": "DE", "k": 1}}


def test_the_registry_says_where_the_candidate_answers(kafka: Kafka, stack: Stack, tmp_path: Path):
    topics = Topics(kafka, tmp_path, "digits@3-rc")
    with ScriptedModel(answer) as model:
        stack.apply(
            [
                *rules.one_model("READ_DIGIT", model.address),
                rules.shard("trial", model.address),
                rules.model("digits@3-rc", "trial", path="/infer-3"),
            ]
        )
        topics.produce([record(0, b"{}", b'{"n":1}', candidate="digits@3-rc")])
        report = topics.work(f"--server={stack.control.url}")
        assert [delivery.target for delivery in model.deliveries] == ["/infer-3"]
    assert report["agreement"]["rate"] == 1.0


def test_rate_and_concurrency_stay_below_their_limits(topics: Topics):
    """A call can't leave early, so time is only a lower bound here."""
    count, rate, concurrency = 60, 40, 3
    lock = threading.Lock()
    running, most = 0, 0

    def slow(_: Delivery) -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.2)  # longer than concurrency / rate, so that both limits are met
        with lock:
            running -= 1
        return response(b"{}")

    topics.produce(plain_records(count))
    with ScriptedModel(slow) as model:
        begin = time.monotonic()
        topics.work(f"--endpoint={model.address}", f"--concurrency={concurrency}")
        unlimited = time.monotonic() - begin
        assert len(model.deliveries) == count
        assert most == concurrency
        assert unlimited >= count / concurrency * 0.2

    with ScriptedModel(answer) as model:
        begin = time.monotonic()
        topics.work(f"--endpoint={model.address}", f"--rate={rate}", "--concurrency=64", "--group=another")
        assert len(model.deliveries) == count
        assert time.monotonic() - begin >= (count - 1) / rate


# --- What it never loses ---


def test_a_record_that_cannot_be_read_is_counted_and_blocks_nothing(topics: Topics):
    good = plain_records(3)
    large = record(9, b"x" * 5_000, None, candidate=CANDIDATE)
    exposure = b'{"schema":"switchboard.exposure/1","id":"1"}\n'
    values = [b"\xff\xfe garbage", good[0], None, large, b"{}\n", good[1], exposure, good[2][:-1], good[2]]
    topics.kafka.produce(topics.records, [(b"one", value) for value in values])  # one key: one partition
    with ScriptedModel(answer) as model:
        report = topics.work(f"--endpoint={model.address}", "--record-bytes-max=4000")
    assert (report["records"]["answered"], report["records"]["unreadable"]) == (3, 6)
    assert report["records"]["reasons"] == {
        "no_envelope": 1,
        "no_value": 1,
        "too_large": 1,
        "bad_envelope": 1,
        "other_schema": 1,
        "wrong_lengths": 1,
    }
    results = topics.results()
    assert len(results) == len(values), "each has its result"
    outcomes = {one.envelope["source"]["offset"]: one.envelope["outcome"] for one in results}
    readable = [offset for offset, outcome in outcomes.items() if outcome == "answered"]
    assert sorted(readable) == [1, 5, 8]
    assert topics.lag() == 0


def test_a_crash_between_result_and_commit_replays_that_record(topics: Topics, monkeypatch: pytest.MonkeyPatch):
    count = 10
    topics.produce(plain_records(count))
    with ScriptedModel(answer) as model:
        flags = [f"--endpoint={model.address}", "--concurrency=1"]
        monkeypatch.setenv("SWITCHBOARD_CONTROL_CRASH_AT", "shadow_result_stored")
        crashed = topics.start(*flags, properties=REJOINS_AT_ONCE)
        assert crashed.wait() == -signal.SIGABRT, crashed.log_tail()
        assert len(topics.results()) == 1, "the result is stored"
        assert topics.committed() == {}, "and its offset is not committed"
        monkeypatch.delenv("SWITCHBOARD_CONTROL_CRASH_AT")
        follower = topics.start(*flags, properties=REJOINS_AT_ONCE)
        follower.wait_until(lambda: topics.lag() == 0, "all records to be done with")
        assert follower.stop() == 0, follower.log_tail()
    seen = ids(topics.results())
    assert set(seen) == expected_ids(count)
    assert sorted(seen.values()) == [1] * (count - 1) + [2]
    report = topics.report()
    assert (report["records"]["answered"], report["records"]["repeated"]) == (count, 1)


def test_kill_9_at_any_time_loses_no_record(topics: Topics, show):
    """Two members of one group; one is killed while it works, and the other one takes its partitions over."""
    count = 240

    def slow(_: Delivery) -> bytes:
        time.sleep(0.05)
        return response(b'{"n":1}')

    topics.produce(plain_records(count))
    with ScriptedModel(slow) as model:
        flags = [f"--endpoint={model.address}", "--concurrency=2"]
        workers = [topics.start(*flags, properties="session.timeout.ms=6000") for _ in range(2)]
        for worker in workers:
            worker.wait_until(lambda worker=worker: "given partitions" in worker.log_tail(), "partitions")
        workers[0].wait_until(lambda: len(topics.results()) >= count // 8, "some results")
        workers[0].kill()
        check_committed(topics)
        workers[1].wait_until(lambda: topics.lag() == 0, "the other one to finish")
        assert workers[1].stop() == 0, workers[1].log_tail()
    check_committed(topics)
    seen = ids(topics.results())
    show(f"{seen.total()} results of {count} records")
    assert set(seen) == expected_ids(count)


def check_committed(topics: Topics) -> None:
    """Each record below a committed offset has its result. Commits are asked for first: results only become more."""
    committed = topics.committed()
    stored = {(one.envelope["source"]["partition"], one.envelope["source"]["offset"]) for one in topics.results()}
    for partition, offset in committed.items():
        missing = [below for below in range(offset) if (partition, below) not in stored]
        assert not missing, f"committed {offset} of partition {partition} without results of {missing}"


def test_a_candidate_that_is_away_is_waited_for(topics: Topics):
    count = 12
    topics.produce(plain_records(count))
    port = free_port()
    worker = topics.start(f"--endpoint=127.0.0.1:{port}")
    worker.wait_until(lambda: "partitions are paused" in worker.log_tail(), "the worker to pause")
    assert topics.results() == []
    assert topics.lag() == count
    topics.produce(plain_records(count, first=count))
    assert topics.lag() == 2 * count
    with ScriptedModel(answer, port):
        worker.wait_until(lambda: topics.lag() == 0, "all records to be done with")
        assert worker.stop() == 0, worker.log_tail()
    assert ids(topics.results()) == dict.fromkeys(expected_ids(2 * count), 1)


def test_a_record_that_ends_every_connection_is_given_up_and_blocks_nothing(topics: Topics):
    def deadly(delivery: Delivery) -> bytes:
        if b'"n":3' in delivery.body:
            raise OSError("as a server that crashes on it")
        return answer(delivery)

    topics.produce(plain_records(6))
    with ScriptedModel(deadly) as model:
        report = topics.work(f"--endpoint={model.address}", "--attempts=2", "--concurrency=1")
        assert 2 <= sum(b'"n":3' in delivery.body for delivery in model.deliveries) <= 4
    assert (report["records"]["answered"], report["records"]["unanswered"]) == (5, 1)
    assert report["records"]["reasons"] == {"no_http_answer": 1}
    assert topics.lag() == 0


def test_a_broker_that_dies_and_comes_back_costs_nothing(topics: Topics):
    count = 100
    gate = threading.Event()

    def gated(_: Delivery) -> bytes:
        gate.wait(60)
        return response(b'{"n":1}')

    topics.produce(plain_records(count))
    with ScriptedModel(gated) as model:
        worker = topics.start(f"--endpoint={model.address}")
        worker.wait_until(lambda: len(model.deliveries) == 4, "as many requests as may be under way")
        topics.kafka.kill()
        gate.set()
        topics.kafka.start()
        worker.wait_until(lambda: topics.lag() == 0, "all records to be done with")
        assert worker.stop() == 0, worker.log_tail()
    assert set(ids(topics.results())) == expected_ids(count)
    check_committed(topics)


def test_told_to_stop_it_finishes_what_is_under_way_and_commits_it(topics: Topics):
    gate = threading.Event()

    def gated(_: Delivery) -> bytes:
        gate.wait(60)
        return response(b'{"n":1}')

    topics.produce(plain_records(40))
    with ScriptedModel(gated) as model:
        worker = topics.start(f"--endpoint={model.address}", "--concurrency=4")
        worker.wait_until(lambda: len(model.deliveries) == 4, "4 requests under way")
        worker.signal(signal.SIGTERM)
        gate.set()
        assert worker.wait() == 0, worker.log_tail()
    assert len(topics.results()) == 4
    assert sum(topics.committed().values()) == 4
    assert "records: 4 answered" in worker.log_tail(), "the report of what was done"


# --- What it refuses ---


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--model=digits"], "not of the form NAME@VERSION"),
        (["--endpoint=nowhere"], "is no endpoint"),
        (["--compare=field:x"], "expected a JSON Pointer"),
        (["--rate=0"], "expected a number from 0.001"),
        (["--concurrency=0"], "0 is not in 1..="),
        (["--until-end", "--topic=never-made"], "have no topic never-made"),
        (["--kafka-properties=/nowhere"], "cannot read /nowhere"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_wrong_arguments_are_refused_in_words(kafka: Kafka, flags: list[str], expected: str):
    usual = {"--model": "digits@1", "--endpoint": "127.0.0.1:1", "--kafka": kafka.address}
    given = {word.split("=")[0] for word in flags}
    words = [f"{name}={value}" for name, value in usual.items() if name not in given]
    command = [binary("switchboard-control"), "shadow-worker", *words, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (1, 2), done
    assert expected in done.stderr
