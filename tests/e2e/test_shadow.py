"""Shadow records on their way from a router into a real Kafka, read back by a client that shares no code with ours."""

import base64
import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import rules
from harness.kafka import Kafka, Message
from harness.process import binary
from harness.router import Router
from harness.scripted import Delivery, ScriptedModel, response
from harness.shadow import record
from harness.stack import Stack
from harness.traffic import BackgroundLoad, Connection
from harness.waiting import wait_until

OBJECTIVE = "SHADOWED_FEED"
DOWN_SECONDS = float(os.environ.get("KAFKA_DOWN_SECONDS", "5"))
"""How long the broker stays away under load. The longer run that docs/shadow.md tells about: 60."""


def echo(delivery: Delivery) -> bytes:
    return response(delivery.body)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(echo) as model:
        yield model


@pytest.fixture
def shadowed(kafka: Kafka, tmp_path: Path, model: ScriptedModel) -> Iterator["Shadowed"]:
    with Stack(tmp_path) as stack:
        yield Shadowed(kafka, stack, model)


class Shadowed:
    """A router whose every request may be copied, and the topic that the copies go to."""

    def __init__(self, kafka: Kafka, stack: Stack, model: ScriptedModel) -> None:
        self.kafka = kafka
        self._stack = stack
        self._model = model
        self.topic = kafka.create_topic(f"shadow-{stack.folder.name}", partitions=4)

    def start(self, sample: int = 10_000) -> Router:
        settings = {
            "shadow": {"topic": self.topic},
            "kafka": {"brokers": [self.kafka.address], "message_timeout": "2s"},
        }
        router = self._stack.start_router("shadowed", **settings)
        target = {"model": "candidate@1", "sample": sample, "unit": "user_id", "capture_response": True}
        documents = rules.one_model(OBJECTIVE, self._model.address, shadow=[target])
        candidate = rules.model("candidate@1", documents[0]["name"])
        self._stack.apply([*documents, candidate])
        router.wait_ready()
        return router

    def messages(self) -> list[Message]:
        return self.kafka.read(self.topic)


def parts(value: bytes) -> tuple[dict, bytes, bytes]:
    """Envelope, request's body, response's body: docs/shadow.md in four lines."""
    line, _, bodies = value.partition(b"\n")
    envelope = json.loads(line)
    request_bytes = envelope["request"]["body_bytes"]
    return envelope, bodies[:request_bytes], bodies[request_bytes:]


def sampled(router: Router) -> int:
    return int(router.metrics().total("switchboard_shadow_sampled_total"))


def lost(router: Router) -> dict[str, float]:
    metrics = router.metrics()
    names = ["switchboard_shadow_not_copied_total", "switchboard_shadow_dropped_total"]
    return {reason: count for name in names for reason, count in metrics.by_label(name, "reason").items() if count}


def wait_until_all_is_delivered(router: Router, extra: int = 0) -> None:
    """`extra`: records that an earlier life of this router left in its spool."""

    def all_is() -> bool:
        metrics = router.metrics()
        delivered = metrics.total("switchboard_shadow_delivered_total")
        wanted = metrics.total("switchboard_shadow_sampled_total") + extra
        return delivered >= wanted and metrics.total("switchboard_spool_records") == 0

    wait_until(all_is, "everything to be delivered", give_up=router.process.why_gone)


def rss_bytes(router: Router) -> int:
    status = Path(f"/proc/{router.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def test_what_is_drawn_arrives_byte_for_byte_and_nothing_else(shadowed: Shadowed):
    router = shadowed.start(sample=3000)
    draw = random.Random(7)
    sent: dict[str, list[bytes]] = {}
    with Connection(router.port) as connection:
        for number in range(1500):
            user = f"u{number % 500}"
            body = draw.randbytes(draw.choice([0, 1, 100, 1000, 40_000]))
            sent.setdefault(user, []).append(body)
            assert connection.ask(OBJECTIVE, user, body=body).body == body
    wait_until_all_is_delivered(router)
    messages = shadowed.messages()
    assert len(messages) == sampled(router)
    assert lost(router) == {}
    seen: dict[str, list[bytes]] = {}
    for message in messages:
        envelope, asked, answered = parts(message.value)
        assert message.headers == {"schema": b"switchboard.shadow/1"}
        assert message.key.decode() == envelope["unit"]["value"]
        assert asked == answered, "the model echoes"
        seen.setdefault(envelope["unit"]["value"], []).append(asked)
    # By Unit: all requests of a drawn user in their order, and none of another.
    assert seen == {user: sent[user] for user in seen}
    assert 0.2 < len(seen) / len(sent) < 0.4, "three tenths of 500 users, four sigmas to each side"


def percentile_us(router: Router, folder: Path, name: str) -> float:
    """p99 that clients see at a fixed rate."""
    report = folder / f"{name}.json"
    command = [binary("switchboard-loadtest"), "run", "--url", f"{router.url}/predict", "--objective", OBJECTIVE]
    command += ["-H", "x-user-id: {user}", "--body-bytes=600", "--rate=300", f"--duration={DOWN_SECONDS}s"]
    command += ["--lag-max=60s", "--json", str(report)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    told = json.loads(report.read_text())
    assert told["failures_total"] == 0
    return told["latency_us"]["p99"]


def test_a_broker_that_is_killed_under_load_costs_no_record_no_order_and_no_client(
    shadowed: Shadowed, tmp_path: Path, show
):
    router = shadowed.start()
    before = percentile_us(router, tmp_path, "up")
    rss_before = rss_bytes(router)
    shadowed.kafka.kill()
    while_down = percentile_us(router, tmp_path, "down")
    in_spool = router.metrics().total("switchboard_spool_records")
    rss_down = rss_bytes(router)
    assert in_spool > 0
    with BackgroundLoad(router.port, OBJECTIVE, connections=2) as load:
        shadowed.kafka.start()
    load.assert_all_succeeded()
    wait_until_all_is_delivered(router)
    messages = shadowed.messages()
    show(
        f"broker away {DOWN_SECONDS:.0f} s, {in_spool:.0f} records in the spool, {len(messages)} messages of "
        f"{sampled(router)} records; clients' p99 {before:.0f} -> {while_down:.0f} us ({while_down / before:.2f}); "
        f"RSS {rss_before >> 20} -> {rss_down >> 20} MiB"
    )
    assert lost(router) == {}
    ids = Counter(parts(message.value)[0]["id"] for message in messages)
    assert len(ids) == sampled(router)
    # What was under way when the broker died may come again; behind itself, never before another.
    first_times: dict[str, list[int]] = {}
    for message in messages:
        envelope, _, _ = parts(message.value)
        if ids.pop(envelope["id"], None):
            first_times.setdefault(message.key.decode(), []).append(envelope["time_unix_us"])
    for key, times in first_times.items():
        assert times == sorted(times), f"records of {key} overtook each other"
    # shadow.buffer_bytes_max of both workers, kafka.queue_bytes_max and librdkafka's own batches.
    assert rss_down - rss_before < 2 * (16 << 20) + 3 * (32 << 20)


def test_kill_9_amid_the_spool_loses_no_complete_record(shadowed: Shadowed, show):
    router = shadowed.start()
    shadowed.kafka.kill()
    load = BackgroundLoad(router.port, OBJECTIVE, connections=4)
    with load:
        wait_until(
            lambda: router.metrics().total("switchboard_spool_records") > 200,
            "records to be in the spool",
            give_up=router.process.why_gone,
        )
        router.kill()
    complete = [json.loads(line)["record"]["id"] for line in router.spool("dump").splitlines()]
    assert len(complete) > 200
    shadowed.kafka.start()
    router.start()
    wait_until_all_is_delivered(router, extra=len(complete))
    delivered = {parts(message.value)[0]["id"] for message in shadowed.messages()}
    show(f"{load.count} answered, {len(complete)} complete in the spool at the kill, {len(delivered)} delivered")
    assert set(complete) <= delivered


# --- Sent again by the load tester ---


def test_replay_sends_a_topics_records_as_they_were_asked_in_their_order(kafka: Kafka, tmp_path: Path):
    topic = kafka.create_topic(f"replayed-{tmp_path.name}", partitions=3)
    bodies = [random.Random(number).randbytes(number * 7) for number in range(120)]
    records = [record(number, body, b"{}", candidate="c@1") for number, body in enumerate(bodies)]
    keys = [f"u{number % 10}".encode() for number in range(len(records))]
    kafka.produce(topic, [*zip(keys, records, strict=True), (None, b"no record"), (None, b'{"schema":"x/1"}\n')])
    with ScriptedModel(lambda _: response(b"{}")) as model:
        report = replay(model, "--topic", topic, "--kafka", kafka.address)
        got = [delivery.body for delivery in model.deliveries]
    assert got == bodies, "one connection: in the order of the records' times, over all partitions"
    assert report["replay"]["records"] == len(bodies)
    assert report["replay"]["skipped"] == {"not_a_record": 1, "other_schema": 1}


def test_replay_takes_what_the_router_dumps_of_its_spool(stack: Stack, model: ScriptedModel):
    router = stack.start_router("spooling")
    target = {"model": "replayed@1", "sample": 10_000, "unit": "user_id"}
    documents = rules.one_model("SPOOLED_FEED", model.address, shadow=[target])
    stack.apply([*documents, rules.model("replayed@1", documents[0]["name"])])
    bodies = [random.Random(number).randbytes(1 + number * 11) for number in range(50)]
    with Connection(router.wait_ready().port) as connection:
        for number, body in enumerate(bodies):
            assert connection.ask("SPOOLED_FEED", f"u{number}", body=body).status == 200
    router.stop()
    dump = router.spool("dump")
    kinds = Counter("content_base64" in json.loads(line)["record"]["request"] for line in dump.splitlines())
    assert kinds.total() == len(bodies)
    assert kinds[True] > 0, "random bytes are no text"
    first = json.loads(dump.splitlines()[0])["record"]["request"]
    assert base64.b64decode(first["content_base64"]) == bodies[0] or first.get("content", "").encode() == bodies[0]
    with ScriptedModel(lambda _: response(b"{}")) as candidate:
        report = replay(candidate, "-", input=dump)
        assert [delivery.body for delivery in candidate.deliveries] == bodies
    assert report["replay"]["records"] == len(bodies)


def replay(candidate: ScriptedModel, *flags: str, **run: str) -> dict:
    command = [binary("switchboard-loadtest"), "replay", "--url", f"http://{candidate.address}/", "--closed"]
    command += ["--connections=1", "--threads=1", "--json", "-", *flags]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300, check=False, **run)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
