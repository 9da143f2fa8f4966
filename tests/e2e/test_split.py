"""Who gets which Arm: the same as computed independently, always, and nobody moves without need."""

import math
from collections import Counter

import pytest

import bucketing
from harness import rules
from harness.stack import Stack
from harness.traffic import arms_of, ask_for_users

USERS = [f"user-{number}" for number in range(20_000)]
ARMS = ("stable", "heavy", "candidate")


@pytest.fixture(scope="module")
def placement(stack: Stack) -> list[rules.Document]:
    """A mock model server for each Arm."""
    addresses = {arm: stack.start_upstream(arm).address for arm in ARMS}
    return [
        document
        for arm, address in addresses.items()
        for document in (rules.shard(f"shard-{arm}", address), rules.model(f"ranker@{arm}", f"shard-{arm}"))
    ]


def ranking(token: str, split: dict[str, int]) -> rules.Document:
    arms = {arm: f"ranker@{arm}" for arm in ARMS}
    return rules.objective(token, arms, "stable", [rules.split_rule(split, salt=f"{token}-salt")])


def predicted_arms(token: str, allocation: bucketing.Allocation) -> dict[str, str]:
    """The default Arm is `stable`: it also answers for Slots that nobody owns."""
    key = bucketing.SlotKey(f"{token}-salt")
    return {user: allocation.arm_of(key.slot(user)) or "stable" for user in USERS}


def test_20_000_users_get_the_arm_that_python_computes(stack, placement, show):
    split = {"stable": 9000, "heavy": 900, "candidate": 100}
    version = stack.apply([*placement, ranking("RANK_MANY", split)])
    predicted = predicted_arms("RANK_MANY", bucketing.Allocation.fresh(split))

    before = stack.router.worker_cpu_seconds()
    answers = ask_for_users(stack.router.port, "RANK_MANY", USERS)
    seen = arms_of(answers)
    assert seen == predicted
    assert {answer.snapshot for answer in answers.values()} == {version}

    counts = Counter(seen.values())
    for arm, slots in split.items():
        share = slots / bucketing.SLOT_COUNT
        sigma = math.sqrt(len(USERS) * share * (1 - share))
        off = (counts[arm] - len(USERS) * share) / sigma
        show(f"{arm}: {counts[arm]} of {len(USERS)} users, expected {len(USERS) * share:.0f}, {off:+.2f} sigma")
        assert abs(off) <= 4

    after = stack.router.worker_cpu_seconds()
    spent = {worker: round(seconds - before[worker], 3) for worker, seconds in after.items()}
    show(f"CPU seconds by worker: {spent}")
    assert len(spent) == 2
    assert min(spent.values()) > max(spent.values()) / 10, "both cores decided"

    again = arms_of(ask_for_users(stack.router.port, "RANK_MANY", USERS[::-1]))
    assert again == predicted, "over other connections, and so other cores"

    stack.router.restart().wait_ready()
    after_restart = arms_of(ask_for_users(stack.router.port, "RANK_MANY", USERS))
    assert after_restart == predicted, "over a restart"
    show(f"{3 * len(USERS)} answers, each user's Arm the same, over both cores and a restart")


@pytest.mark.parametrize(
    ("token", "old", "new"),
    [
        ("RAMP_TWO", {"stable": 9000, "heavy": 1000}, {"stable": 8000, "heavy": 2000}),
        ("RAMP_FALLTHROUGH", {"heavy": 500}, {"heavy": 2500}),
        ("ADD_ARM", {"stable": 9000, "heavy": 1000}, {"stable": 8000, "heavy": 1000, "candidate": 1000}),
    ],
)
def test_a_changed_split_moves_exactly_the_predicted_users(stack, placement, show, token, old, new):
    stack.apply([*placement, ranking(token, old)])
    allocation = bucketing.Allocation.fresh(old)
    before = arms_of(ask_for_users(stack.router.port, token, USERS))
    assert before == predicted_arms(token, allocation)

    changed = [*placement, ranking(token, new)]
    plan = stack.plan(changed)
    stack.apply(changed)
    reallocated = allocation.changed_to(new)
    after = arms_of(ask_for_users(stack.router.port, token, USERS))
    assert after == predicted_arms(token, reallocated)

    moved = Counter((before[user], after[user]) for user in USERS if before[user] != after[user])
    slots = allocation.moves_to(reallocated)
    show(f"{old} -> {new}: {moved.total()} of {len(USERS)} users moved: {dict(moved)}")
    show(f"plan said before, in Slots of {bucketing.SLOT_COUNT}: {slots}")
    assert plan.slot_moves(token, "trial") == slots
    assert len(moved) == 1, "all moves go one way"
