"""Real models: digits through MLServer, the same bytes through the router as asked directly."""

from collections import Counter

import requests

import bucketing
from harness import rules
from harness.mlserver import Digits, inference_request
from harness.stack import Stack

SPLIT = {"light": 5000, "heavy": 5000}


def test_500_digits_through_the_router_equal_those_asked_directly(stack: Stack, digits: Digits, show):
    servers = digits.servers
    infer_path = servers["light"].infer_path
    stack.apply(
        [
            *(rules.shard(f"digits-{name}", server.address) for name, server in servers.items()),
            *(
                rules.model(
                    f"digits@{name}", f"digits-{name}", validation={"ready": "/v2/health/ready"}, path=infer_path
                )
                for name in servers
            ),
            rules.objective(
                "READ_DIGIT",
                {name: f"digits@{name}" for name in servers},
                "light",
                [rules.split_rule(SPLIT, salt="digits-trial")],
            ),
        ]
    )
    key = bucketing.SlotKey("digits-trial")
    allocation = bucketing.Allocation.fresh(SPLIT)
    assert len(digits.inputs) == 500
    arms: Counter[str] = Counter()
    right = 0
    direct, routed = requests.Session(), requests.Session()
    for number, digit in enumerate(digits.inputs):
        user = f"writer-{number}"
        arm = allocation.arm_of(key.slot(user))
        body = inference_request(number, digit["pixels"])
        headers = {"content-type": "application/json"}
        expected = direct.post(f"http://{servers[arm].address}{infer_path}", body, headers=headers, timeout=60)
        assert expected.status_code == 200, expected.text
        headers |= {"x-switchboard-objective": "READ_DIGIT", "x-user-id": user}
        got = routed.post(f"{stack.router.url}/v2/models/digits/infer", body, headers=headers, timeout=60)
        assert got.headers["x-switchboard-arm"] == arm
        assert (got.status_code, got.content) == (200, expected.content)
        arms[arm] += 1
        right += got.json()["outputs"][0]["data"][0] == digit["digit"]
    show(f"{arms.total()} answers equal byte for byte; by Arm {dict(arms)}; {right} digits read right")
    assert right > 0.8 * arms.total(), "these are real models"
    assert set(arms) == set(SPLIT), "both Arms answered"
