"""Snapshots change under load, and no client notices."""

import time

from harness import rules
from harness.stack import Stack
from harness.traffic import BackgroundLoad

ACTIVATIONS = 1_000


def test_1000_activations_under_load_fail_no_request(stack: Stack, show):
    upstream = stack.start_upstream("only")
    contents = [rules.one_model("STEADY", upstream.address, body_max=size) for size in ("1MiB", "2MiB")]
    first = stack.apply(contents[0])

    begun = time.monotonic()
    with BackgroundLoad(stack.router.port, "STEADY", connections=4) as load:
        for number in range(1, ACTIVATIONS + 1):
            last = stack.apply(contents[number % 2])
    seconds = time.monotonic() - begun

    load.assert_all_succeeded()
    assert last == first + ACTIVATIONS
    versions = [[answer.snapshot for answer in answers] for answers in load.answers]
    valid = set(range(first, last + 1))
    for seen in versions:
        assert valid.issuperset(seen), "every response carries one valid version"
        assert seen == sorted(seen), "versions never go back on a connection"
    met = {version for seen in versions for version in seen}
    show(
        f"{ACTIVATIONS} activations in {seconds:.1f} s under {load.count} requests on 4 connections: 0 failed, "
        f"{len(met)} different versions seen, none went back"
    )
    assert len(met) > ACTIVATIONS / 10, "the load was there while the versions changed"
