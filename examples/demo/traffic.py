"""Thousands of users, sent by the load generator, with a record of every single answer."""

import json
import signal
from collections import Counter, defaultdict

FEED = "RECOMMEND_HOME_FEED"
CHAT = "ANSWER_SUPPORT_CHAT"
CONNECTIONS = 8

_CHAT_BODY = {
    "model": f"objective/{CHAT}",
    "user": "{user}",
    "messages": [{"role": "user", "content": "Where is my parcel?"}],
}

# How a client asks for each Objective: by header, or as any OpenAI client does, in the body.
_REQUESTS = {
    FEED: ("/v2/models/feed/infer", ["--objective", FEED, "--header", "x-user-id: {user}", "--body", '{"k":10}']),
    CHAT: ("/v1/chat/completions", ["--body", json.dumps(_CHAT_BODY)]),
}


class Answers:
    """What users were answered, from the generator's records."""

    def __init__(self, lines):
        self.arm_of = {}
        self.failures = []
        self.versions = set()
        self.reasons = Counter()
        self._milliseconds = defaultdict(list)  # by Arm
        for line in lines:
            record = json.loads(line)
            if record["failure"]:
                self.failures.append(f"{record['user']}: {record['failure']}")
                continue
            self.arm_of[record["user"]] = record["arm"]
            self.versions.add(record["snapshot"])
            self.reasons[record["reason"]] += 1
            self._milliseconds[record["arm"]].append(record["latency_us"] / 1000)

    @property
    def count(self):
        return sum(map(len, self._milliseconds.values())) + len(self.failures)

    def share(self, arm):
        return sum(seen == arm for seen in self.arm_of.values()) / max(1, len(self.arm_of))

    def percentile(self, arm, percent):
        times = sorted(self._milliseconds[arm])
        return times[min(len(times) - 1, len(times) * percent // 100)] if times else float("nan")


class Traffic:
    """Requests under way: for `users` users, once each, or again and again until `finish`."""

    def __init__(self, programs, port, objective, users, folder, endless=False):
        path, how = _REQUESTS[objective]
        self.answers = None
        self._record = folder / f"answers-{len(list(folder.glob('*.jsonl')))}.jsonl"
        self._child = programs.start(
            self._record.stem,
            "switchboard-loadtest",
            "run",
            f"--url=http://127.0.0.1:{port}{path}",
            f"--users={users}",
            f"--connections={CONNECTIONS}",
            f"--record={self._record}",
            *(["--duration=60s"] if endless else [f"--requests={users}"]),
            *how,
        )

    def recorded_bytes(self):
        return self._record.stat().st_size if self._record.exists() else 0

    def finish(self, stop=False):
        """All answers; with `stop`, ends endless traffic first."""
        if stop:
            self._child.signal(signal.SIGINT)
        self._child.wait()
        self.answers = Answers(self._record.read_text().splitlines())
        return self.answers


def ask_all(programs, port, objective, users, folder):
    """One request for each user; what they were answered."""
    return Traffic(programs, port, objective, users, folder).finish()
