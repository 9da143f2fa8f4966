"""Runs Switchboard's whole main job on this machine, and judges it.

usage: python3 examples/demo [--users N] [--binaries FOLDER]

Three model servers, a control plane (SQLite in a temporary folder) and a router. The rules of
examples/rules are applied; thousands of users send requests; the split is changed while they do; a
model server is killed; the change is rolled back. Exits 0 only if every claim held.

Needs nothing but Python's standard library and the built binaries (`make build`).
"""

import argparse
import contextlib
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path

from control import Control
from programs import Programs, free_port, wait_until
from router import Router
from screen import BrokenError, Screen
from traffic import CHAT, FEED, Traffic, ask_all

EXAMPLES = Path(__file__).resolve().parents[1]
# By Shard: the port that examples/rules/placement.yaml has, and how long the server thinks.
SERVERS = {
    "serving-a": (19101, "lognormal:2ms,0.3"),
    "serving-b": (19102, "lognormal:4ms,0.3"),
    "serving-c": (19103, "lognormal:3ms,0.3"),
}
SPLITS = {
    FEED: {"stable": 0.90, "heavy": 0.09, "candidate": 0.01},
    CHAT: {"small": 0.50, "large": 0.50},
}
RULE = "ranker-trial"
OLD_SPLIT = "split: { stable: 9000, heavy: 900, candidate: 100 }"
NEW_SPLIT = "split: { stable: 8000, heavy: 1900, candidate: 100 }"


def main():
    arguments = parse_arguments()
    screen = Screen()
    folder = Path(tempfile.mkdtemp(prefix="switchboard-demo-"))
    programs = Programs(arguments.binaries, folder)
    # So that whoever ends us (a terminal, a CI) gets everything stopped that we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        with contextlib.suppress(BrokenError):
            Demo(screen, programs, folder, arguments.users).run()
    except KeyboardInterrupt:
        screen.claim(False, "interrupted")
    finally:
        stuck = programs.stop_all()  # before anything is printed: the terminal may be gone
        screen.step("Stop")
        screen.claim(not stuck, "everything that was started has stopped" if not stuck else f"killed: {stuck}")
    code = screen.verdict(folder)
    if code == 0:
        shutil.rmtree(folder)
    return code


class Demo:
    """The story, step by step."""

    def __init__(self, screen, programs, folder, users):
        self.screen = screen
        self.programs = programs
        self.folder = folder
        self.users = users
        self.rules = folder / "rules"
        self.control = Control(screen, programs)
        self.router = Router(screen, programs, folder)
        self.ports = {}
        self.models = {}

    def run(self):
        self.start()
        version = self.apply_the_rules()
        before = self.send_everybody("Everybody asks")
        after = self.change_the_split(before)
        self.kill_a_model_server(after)
        self.roll_back(version, before)

    def start(self):
        self.screen.step("Start three model servers, a router and the control plane")
        for name, (wanted, latency) in SERVERS.items():
            self.ports[name] = free_port(wanted)
            self.models[name] = self.start_model_server(name, latency)
        self.router.start(self.control.make_keys(), EXAMPLES / "facts.jsonl")
        self.control.start(self.router.sockets)
        addresses = ", ".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.screen.claim(True, f"model servers on {addresses}; router on 127.0.0.1:{self.router.port}")
        self.screen.claim(not self.router.is_ready(), "the router is alive, and not ready: it has no Snapshot yet")

    def start_model_server(self, name, latency):
        listen = f"--listen=127.0.0.1:{self.ports[name]}"
        child = self.programs.start(
            name, "switchboard-loadtest", "upstream", listen, f"--name={name}", f"--latency={latency}"
        )
        self.screen.require(wait_until(lambda: "listening on" in child.log_tail(), child), f"{name} listens", child)
        return child

    def apply_the_rules(self):
        self.screen.step("Apply the rules")
        shutil.copytree(EXAMPLES / "rules", self.rules)
        place(self.rules / "placement.yaml", {wanted: self.ports[name] for name, (wanted, _) in SERVERS.items()})
        version = self.control.apply(self.rules)
        self.screen.claim(
            wait_until(lambda: self.router.is_ready() and self.router.version() == version),
            f"version {version} was validated, signed and pushed; every core of the router evaluates it",
            essential=True,
        )
        self.show_one_request()
        self.show_facts()
        return version

    def show_one_request(self):
        """What a client sends, and what it learns about who answered."""
        url = f"http://127.0.0.1:{self.router.port}/v2/models/feed/infer"
        headers = {"x-switchboard-objective": FEED, "x-user-id": "u7"}
        shown = [f"-H '{name}: {value}'" for name, value in headers.items()]
        self.screen.command(["curl", "-i", *shown, "-d", "'{\"k\":10}'", url])
        request = urllib.request.Request(url, b'{"k":10}', {**headers, "content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            decision = [f"{name}: {value}" for name, value in response.getheaders() if name.startswith("x-")]
            self.screen.note("\n".join([f"HTTP/1.1 {response.status} {response.reason}", *decision]))

    def show_facts(self):
        """A model that needs to know the user; who is not known gets the one that does not."""
        url = f"http://127.0.0.1:{self.router.port}/v2/models/risk/infer"
        found = {}
        for user in ("u7", "u9", "nobody"):
            headers = {"x-switchboard-objective": "SCORE_PAYMENT_RISK", "x-user-id": user}
            request = urllib.request.Request(url, b'{"amount":120}', {**headers, "content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as response:
                found[user] = (response.headers["x-switchboard-arm"], response.headers["x-switchboard-facts"])
        expected = {"u7": ("informed", "hit"), "u9": ("basic", None), "nobody": ("basic", "missing")}
        self.screen.claim(
            found == expected,
            "facts: u7 is known and gets the informed model, u9 is blocked, and who is not known gets the basic one",
        )

    def send_everybody(self, title):
        """One request from every user for both Objectives; the table; each user's Arm of the feed."""
        self.screen.step(f"{title}: {self.users} users, {len(SPLITS)} Objectives")
        everything = {
            objective: ask_all(self.programs, self.router.port, objective, self.users, self.folder)
            for objective in SPLITS
        }
        self.table({objective: (answers, SPLITS[objective]) for objective, answers in everything.items()})
        failures = [failure for answers in everything.values() for failure in answers.failures]
        total = sum(answers.count for answers in everything.values())
        self.screen.claim(not failures, f"{total} requests, {len(failures)} failed", essential=True)
        self.screen.claim(
            all(
                abs(answers.share(arm) - share) <= 4 * math.sqrt(share * (1 - share) / self.users)
                for objective, answers in everything.items()
                for arm, share in SPLITS[objective].items()
            ),
            "every share is within 4 sigma of what was asked for",
        )
        again = ask_all(self.programs, self.router.port, FEED, self.users, self.folder)
        same = again.arm_of == everything[FEED].arm_of
        self.screen.claim(same, "asked again, over new connections: every user got the same Arm")
        return everything[FEED].arm_of

    def change_the_split(self, before):
        self.screen.step("Change the split, live")
        replace(self.rules / "home-feed.yaml", OLD_SPLIT, NEW_SPLIT)
        moves = self.control.plan(self.rules, FEED, RULE)
        slots = self.control.slots_of_users(FEED, RULE, before)
        predicted = {
            user: move["to"] for user, slot in slots.items() for move in moves if slot in slots_of(move["slot_ranges"])
        }
        with self.endless_traffic() as traffic:
            self.control.apply(self.rules)
        answers = traffic.answers
        self.screen.claim(
            not answers.failures and len(answers.versions) == 2,
            f"{answers.count} requests while it changed, {len(answers.failures)} failed; "
            f"versions seen: {', '.join(sorted(answers.versions))}",
        )
        after = ask_all(self.programs, self.router.port, FEED, self.users, self.folder).arm_of
        moved = {user: arm for user, arm in after.items() if arm != before[user]}
        kinds = Counter((before[user], arm) for user, arm in moved.items())
        self.screen.note(
            "\n".join(f"{count} users moved from {old} to {new}" for (old, new), count in sorted(kinds.items()))
        )
        self.screen.claim(
            moved == predicted,
            f"exactly the {len(predicted)} users moved whom the plan and their Slots foretold, and nobody else",
        )
        return after

    def kill_a_model_server(self, before):
        name = "serving-b"
        self.screen.step(f"Kill the model server {name}, which answers for the Arm heavy")
        with self.endless_traffic() as traffic:
            self.models[name].kill()
        self.screen.claim(
            not traffic.answers.failures,
            f"{traffic.answers.count} requests around the kill, {len(traffic.answers.failures)} failed for a client",
        )
        answers = ask_all(self.programs, self.router.port, FEED, self.users, self.folder)
        self.table({FEED: (answers, None)})
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(answers.reasons.items()))
        self.screen.note(f"reasons given: {reasons}")
        expected = {user: "stable" if arm == "heavy" else arm for user, arm in before.items()}
        self.screen.claim(
            answers.arm_of == expected, "its users are answered by the default Arm, with a reason; nobody else moved"
        )
        self.models[name] = self.start_model_server(name, SERVERS[name][1])
        self.screen.claim(
            wait_until(
                lambda: ask_all(self.programs, self.router.port, FEED, self.users, self.folder).arm_of == before
            ),
            "it came back, and so did its users",
        )

    def roll_back(self, version, before):
        self.screen.step("Roll back")
        newer = self.control.rollback(version)
        self.screen.claim(newer > version, f"version {newer} has the content of version {version}: none ever goes back")
        answers = ask_all(self.programs, self.router.port, FEED, self.users, self.folder)
        self.screen.claim(answers.arm_of == before, f"all {self.users} users are back in their first Arms")

    def table(self, everything):
        rows = [
            (
                objective,
                arm,
                f"{shares[arm]:.1%}" if shares else "",
                f"{answers.share(arm):.1%}",
                f"{answers.percentile(arm, 50):.1f} ms",
                f"{answers.percentile(arm, 99):.1f} ms",
            )
            for objective, (answers, shares) in everything.items()
            for arm in SPLITS[objective]
            if answers.share(arm) > 0 or shares
        ]
        self.screen.table(("Objective", "Arm", "expected", "seen", "p50", "p99"), rows)

    @contextlib.contextmanager
    def endless_traffic(self):
        """Traffic before, during and after the block, whose `answers` are there when it has ended."""
        traffic = Traffic(self.programs, self.router.port, FEED, self.users, self.folder, endless=True)
        wait_until(lambda: traffic.recorded_bytes() > 0)
        try:
            yield traffic
            enough = traffic.recorded_bytes() + 100_000  # some hundred answers more
            wait_until(lambda: traffic.recorded_bytes() > enough)
        finally:
            traffic.finish(stop=True)


def replace(path, old, new):
    text = path.read_text()
    if old not in text:
        raise ValueError(f"{path} has no `{old}`")
    path.write_text(text.replace(old, new))


def place(path, ports):
    """Where a wanted port was taken, another one was chosen. All at once: one's choice may be another's wish."""
    text = path.read_text()
    path.write_text(re.sub(r"127\.0\.0\.1:(\d+)", lambda match: f"127.0.0.1:{ports[int(match[1])]}", text))


def slots_of(ranges):
    """The Slots in ranges such as ["0-4499", "7000"]."""
    ends = [[int(end) for end in text.split("-")] for text in ranges]
    return {slot for first, *last in ends for slot in range(first, (last or [first])[0] + 1)}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=5_000, help="how many users ask (default: 5000)")
    parser.add_argument(
        "--binaries",
        type=Path,
        default=Path(os.environ.get("CARGO_TARGET_DIR", EXAMPLES.parent / "target")) / "debug",
        help="folder of the built programs (default: cargo's own, target/debug)",
    )
    arguments = parser.parse_args()
    arguments.binaries = arguments.binaries.absolute()  # programs run in another folder
    if not (arguments.binaries / "switchboard-router").exists():
        parser.error(f"{arguments.binaries} has no switchboard-router: run `make build`")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
