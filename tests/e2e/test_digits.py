"""Real models: digits through MLServer, the same bytes through the router as asked directly."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests

import bucketing
from harness import mlserver, rules
from harness.mlserver import MLServer
from harness.stack import Stack

pytestmark = pytest.mark.skipif(mlserver.why_unavailable() is not None, reason=str(mlserver.why_unavailable()))

SPLIT = {"light": 5000, "heavy": 5000}


@dataclass(frozen=True)
class Served:
    """The two versions by Arm, and handwritten digits that neither was trained on."""

    servers: dict[str, MLServer]
    digits: list[dict]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("mlserver")
    digits = mlserver.train_digits(folder)
    servers = {name: MLServer(folder / name, "digits", name, folder / f"{name}.joblib") for name in SPLIT}
    try:
        for server in servers.values():
            server.wait_ready()
        yield Served(servers, digits)
    finally:
        for server in servers.values():
            server.stop()


def inference_request(number: int, pixels: list[float]) -> bytes:
    """An Open Inference (V2) request. Without an `id` MLServer makes one up, and no two answers are equal."""
    return json.dumps(
        {
            "id": f"digit-{number}",
            "inputs": [{"name": "predict", "shape": [1, 64], "datatype": "FP32", "data": pixels}],
            "outputs": [{"name": "predict"}, {"name": "predict_proba"}],
        }
    ).encode()


def test_500_digits_through_the_router_equal_those_asked_directly(stack: Stack, served: Served, show):
    servers = served.servers
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
    assert len(served.digits) == 500
    arms: Counter[str] = Counter()
    right = 0
    direct, routed = requests.Session(), requests.Session()
    for number, digit in enumerate(served.digits):
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
