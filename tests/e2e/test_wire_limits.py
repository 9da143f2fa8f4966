"""What a router does at the host's limits. It has a stack of its own, since it takes things away from it."""

import resource
import time
from pathlib import Path

import requests

from harness import rules
from harness.raw import RawConnection
from harness.scripted import ScriptedModel, response
from harness.waiting import wait_until


def test_rs_01_without_descriptors_it_serves_on_and_recovers(stack, show):
    with ScriptedModel(lambda delivery: response(delivery.body)) as model:
        stack.apply(rules.one_model("FEW_FILES", model.address))
        router = stack.router
        ask = b"POST / HTTP/1.1\r\nHost: a\r\nx-switchboard-objective: FEW_FILES\r\nContent-Length: 2\r\n\r\nok"

        def open_files() -> int:
            return len(list(Path(f"/proc/{router.process.pid}/fd").iterdir()))

        with RawConnection(router.port) as early:
            early.send(ask)
            assert early.read_response().body == b"ok"
            before = open_files()
            limit = before + 40
            resource.prlimit(router.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
            crowd = [RawConnection(router.port) for _ in range(200)]
            wait_until(lambda: open_files() >= limit - 1, "the descriptors to run out")

            busy, began = sum(router.worker_cpu_seconds().values()), time.monotonic()
            early.send(ask)
            assert early.read_response().body == b"ok", "who is connected is served on"
            time.sleep(2)
            share = (sum(router.worker_cpu_seconds().values()) - busy) / (time.monotonic() - began)
            show(f"{share:.1%} of a core while no descriptor was left")
            assert share < 0.2, "accepting spins"

            for connection in crowd:
                connection.close()
        headers = {"x-switchboard-objective": "FEW_FILES"}
        answer = requests.post(router.url, b"late", headers=headers, timeout=30)
        assert (answer.status_code, answer.content) == (200, b"late"), "by itself, once some are free"
        for _ in range(2_000):
            RawConnection(router.port).close()
        wait_until(lambda: open_files() <= before + 2, "every descriptor to be given back")
        stack.apply(rules.one_model("FEW_FILES_LATER", model.address))  # over the control socket, as before
