"""A real Apache Kafka, and what tests write into it and read back, with a client that shares no code with ours."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from .process import REPOSITORY

_SCRIPT = REPOSITORY / "tests/kafka.sh"
_CANNOT_BE_HAD = 3


class Unavailable(Exception):  # noqa: N818 - a host without Java is no error
    """There is no Kafka on this host; the text says why."""


@dataclass(frozen=True)
class Message:
    """One message as it lies in its topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class Kafka:
    """One broker on a free port; its folder keeps port and topics over a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""

    def start(self) -> "Kafka":
        done = subprocess.run([_SCRIPT, "start", self.folder], capture_output=True, text=True, check=False)
        if done.returncode == _CANNOT_BE_HAD:
            raise Unavailable(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        self.address = done.stdout.strip()
        return self

    def stop(self) -> None:
        subprocess.run([_SCRIPT, "stop", self.folder], check=True)

    def kill(self) -> None:
        """As a crash would."""
        subprocess.run([_SCRIPT, "kill", self.folder], check=True)

    # --- Topics ---

    def create_topic(self, name: str, partitions: int = 2) -> str:
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        try:
            admin.create_topics([NewTopic(name, partitions, 1)], wait_for_metadata=True)
        finally:
            admin.close()
        return name

    def produce(self, topic: str, messages: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Writes key and value of each; returns when the broker has all of them."""
        producer = KafkaProducer(bootstrap_servers=self.address, acks="all")
        try:
            sent = [producer.send(topic, key=key, value=value) for key, value in messages]
            for one in sent:
                one.get(timeout=60)
        finally:
            producer.close()

    def read(self, topic: str) -> list[Message]:
        """All that the topic holds now, in order within each partition."""
        consumer = KafkaConsumer(bootstrap_servers=self.address, enable_auto_commit=False)
        try:
            partitions = self._partitions(consumer, topic)
            ends = consumer.end_offsets(partitions)
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            messages: list[Message] = []
            while any(consumer.position(one) < ends[one] for one in partitions):
                for records in consumer.poll(timeout_ms=200).values():
                    messages += [
                        Message(one.partition, one.offset, one.key, one.value, dict(one.headers)) for one in records
                    ]
            return messages
        finally:
            consumer.close()

    def ends(self, topic: str) -> dict[int, int]:
        """Where the next message of each partition will lie."""
        consumer = KafkaConsumer(bootstrap_servers=self.address, enable_auto_commit=False)
        try:
            return {one.partition: end for one, end in consumer.end_offsets(self._partitions(consumer, topic)).items()}
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Where the group's next reader begins; only partitions that it has committed."""
        consumer = KafkaConsumer(bootstrap_servers=self.address, group_id=group, enable_auto_commit=False)
        try:
            offsets = {one.partition: consumer.committed(one) for one in self._partitions(consumer, topic)}
            return {partition: offset for partition, offset in offsets.items() if offset is not None}
        finally:
            consumer.close()

    def _partitions(self, consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for partition in sorted(consumer.partitions_for_topic(topic) or ())]
