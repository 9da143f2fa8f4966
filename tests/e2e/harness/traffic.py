"""Many users over many connections, with what each of them was answered."""

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

OBJECTIVE_HEADER = "x-switchboard-objective"
ARM_HEADER = "x-switchboard-arm"
SNAPSHOT_HEADER = "x-switchboard-snapshot"


@dataclass(frozen=True)
class Answer:
    """What one request got."""

    status: int
    arm: str | None
    snapshot: int | None
    body: bytes

    @classmethod
    def read(cls, response: http.client.HTTPResponse) -> "Answer":
        snapshot = response.getheader(SNAPSHOT_HEADER)
        return cls(
            response.status,
            response.getheader(ARM_HEADER),
            int(snapshot) if snapshot else None,
            response.read(),
        )


class Connection:
    """One keep-alive connection that is never reopened: a connection that dies is an error."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._http.connect()
        self._http.auto_open = False

    def ask(self, objective: str, user: str, path: str = "/predict", body: bytes = b'{"k":10}') -> Answer:
        headers = {OBJECTIVE_HEADER: objective, "x-user-id": user, "content-type": "application/json"}
        self._http.request("POST", path, body, headers)
        return Answer.read(self._http.getresponse())

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask_for_users(port: int, objective: str, users: Sequence[str], connections: int = 16) -> dict[str, Answer]:
    """One request for each user, spread over keep-alive connections that work at the same time."""
    answers: dict[str, Answer] = {}

    def work(share: Iterable[str]) -> None:
        with Connection(port) as connection:
            for user in share:
                answers[user] = connection.ask(objective, user)

    run_together([lambda share=users[at::connections]: work(share) for at in range(connections)])
    return answers


def arms_of(answers: dict[str, Answer]) -> dict[str, str | None]:
    """Each user's Arm; a failed request is an AssertionError that tells how many there were."""
    failed = Counter((answer.status, answer.body[:200]) for answer in answers.values() if answer.status != 200)
    assert not failed, f"{failed.total()} of {len(answers)} requests failed: {failed.most_common(3)}"
    return {user: answer.arm for user, answer in answers.items()}


def run_together(works: Sequence[Callable[[], None]]) -> None:
    """Runs each in a thread; the first exception of any is raised here once all have ended."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class BackgroundLoad:
    """Keep-alive connections that ask without a pause until the block ends.

    Afterwards `answers` has, for each connection, all answers in order, and `errors` what broke.
    """

    def __init__(self, port: int, objective: str, connections: int = 4, **ask: object) -> None:
        self.answers: list[list[Answer]] = [[] for _ in range(connections)]
        self.errors: list[Exception] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=[port, objective, number, ask]) for number in range(connections)
        ]

    def _work(self, port: int, objective: str, number: int, ask: dict) -> None:
        mine = self.answers[number]
        try:
            with Connection(port) as connection:
                while not self._stop.is_set():
                    mine.append(connection.ask(objective, f"c{number}-u{len(mine)}", **ask))
        except (OSError, http.client.HTTPException) as error:
            self.errors.append(error)

    def __enter__(self) -> "BackgroundLoad":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def count(self) -> int:
        return sum(map(len, self.answers))

    def assert_all_succeeded(self) -> None:
        assert not self.errors, f"{len(self.errors)} connections broke: {self.errors[0]!r}"
        statuses = Counter(answer.status for answers in self.answers for answer in answers)
        assert set(statuses) == {200}, f"not all of {self.count} requests succeeded: {statuses}"
