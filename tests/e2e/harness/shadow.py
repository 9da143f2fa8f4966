"""Shadow records as docs/shadow.md describes them, the results of replaying them, and the worker that does it."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .kafka import Kafka, Message
from .process import Process, binary


def record(
    number: int,
    body: bytes,
    answer: bytes | None,
    *,
    candidate: str,
    status: int = 200,
    first_byte_us: int = 1_000,
    total_us: int = 1_100,
    request: dict | None = None,
    response: dict | None = None,
    **envelope: object,
) -> bytes:
    """A whole record; `request`, `response` and further members replace what is usual."""
    line = {
        "schema": "switchboard.shadow/1",
        "id": f"record-{number:06}",
        "time_unix_us": 1_796_072_000_000_000 + number,
        "router": "router",
        "traffic_class": "live",
        "objective": "READ_DIGIT",
        "snapshot": 42,
        "target": {"model": candidate, "sample": 10_000, "by": "unit"},
        "unit": {"attribute": "user_id", "value": f"writer-{number}"},
        "decision": {
            "arm": "light",
            "model": "digits@light",
            "reason": "default",
            "rule": None,
            "slot": None,
            "decided_arm": "light",
        },
        "facts": None,
        "request": {
            "id": f"request-{number}",
            "method": "POST",
            "target": "/v2/models/digits/infer",
            "headers": [["content-type", "application/json"]],
            "model_place": None,
            "body": "whole",
            "body_bytes": len(body),
            **(request or {}),
        },
        "response": None
        if answer is None
        else {
            "status": status,
            "headers": [["content-type", "application/json"]],
            "body": "whole",
            "body_bytes": len(answer),
            "body_bytes_total": len(answer),
            "complete": True,
            **(response or {}),
        },
        "timing": {"overhead_us": 31, "first_byte_us": first_byte_us, "total_us": total_us},
        **envelope,
    }
    return json.dumps(line).encode() + b"\n" + body + (answer or b"")


@dataclass(frozen=True)
class Result:
    """A message of the results' topic."""

    message: Message
    envelope: dict
    body: bytes

    @property
    def id(self) -> str:
        return self.envelope["record"]["id"]


def result(message: Message) -> Result:
    line, _, body = message.value.partition(b"\n")
    envelope = json.loads(line)
    assert envelope["schema"] == "switchboard.shadow-result/1"
    assert message.headers["schema"] == b"switchboard.shadow-result/1"
    assert len(body) == envelope["body_bytes"]
    return Result(message, envelope, body)


class Topics:
    """One topic of records and one of results, and the worker that goes from one to the other."""

    def __init__(self, kafka: Kafka, folder: Path, candidate: str, partitions: int = 2) -> None:
        self.kafka = kafka
        self.folder = folder
        self.candidate = candidate
        self.records = kafka.create_topic(f"records-{folder.name}", partitions)
        self.results_topic = kafka.create_topic(f"results-{folder.name}", partitions)
        self.group = f"switchboard-shadow-worker.{candidate}"
        self._workers: list[Process] = []
        self._names = 0

    def produce(self, records: Sequence[bytes]) -> None:
        """Keyed as a router does, by Unit."""
        self.kafka.produce(self.records, [(f"writer-{number}".encode(), value) for number, value in enumerate(records)])

    def results(self) -> list[Result]:
        return [result(message) for message in self.kafka.read(self.results_topic)]

    def committed(self) -> dict[int, int]:
        return self.kafka.committed(self.group, self.records)

    def lag(self) -> int:
        """Records that the group has not committed."""
        return sum(self.kafka.ends(self.records).values()) - sum(self.committed().values())

    def start(self, *flags: str, properties: str = "", **popen: object) -> Process:
        """A worker that goes on until it is told to stop."""
        name = self._name()
        (self.folder / f"{name}.properties").write_text(properties)
        worker = Process(name, self._command("shadow-worker", name, *flags), self.folder / f"{name}.log", **popen)
        self._workers.append(worker)
        return worker

    def kill(self) -> None:
        """Ends every worker that a test has left behind."""
        for worker in self._workers:
            worker.kill()

    def work(self, *flags: str) -> dict:
        """Replays all that is there; returns the worker's report."""
        return self._json("shadow-worker", self._name(), "--until-end", *flags)

    def report(self) -> dict:
        """What all stored results say together."""
        return self._json("shadow-report", "report")

    def _name(self) -> str:
        self._names += 1
        return f"worker-{self._names}"

    def _json(self, command: str, name: str, *flags: str) -> dict:
        (self.folder / f"{name}.properties").touch()
        words = self._command(command, name, "--json", *flags)
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _command(self, command: str, name: str, *flags: str) -> list[str]:
        topic = [f"--topic={self.records}"] if command == "shadow-worker" else []
        return [
            str(binary("switchboard-control")),
            command,
            f"--kafka={self.kafka.address}",
            f"--kafka-properties={self.folder / f'{name}.properties'}",
            *topic,
            f"--results-topic={self.results_topic}",
            f"--model={self.candidate}",
            *flags,
        ]
