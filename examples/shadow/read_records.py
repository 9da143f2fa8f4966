"""Reads Shadow records and Exposures from Kafka: needs `pip install confluent-kafka`, and nothing else.

usage: python examples/shadow/read_records.py HOST:PORT [TOPIC...]
"""

import json
import sys

from confluent_kafka import Consumer


def read(value: bytes) -> tuple[dict, bytes, bytes]:
    """A record's envelope and its two bodies, as docs/shadow.md has them."""
    line, _, bodies = value.partition(b"\n")
    envelope = json.loads(line)
    if envelope["schema"] != "switchboard.shadow/1":
        return envelope, b"", b""
    request_bytes = envelope["request"]["body_bytes"]
    return envelope, bodies[:request_bytes], bodies[request_bytes:]


def main() -> None:
    broker, *topics = sys.argv[1:]
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "read-records", "auto.offset.reset": "earliest"})
    consumer.subscribe(topics or ["switchboard.shadow", "switchboard.exposures"])
    try:
        while True:
            message = consumer.poll(1.0)
            if message is None or message.error():
                continue
            envelope, request, response = read(message.value())
            unit = (message.key() or b"-").decode()
            print(envelope["id"], unit, envelope["schema"], len(request), len(response))
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
