"""MLServer: a real model server, serving scikit-learn models on the Open Inference (V2) protocol."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import requests

from .ports import free_port
from .process import REPOSITORY, Process

_ENVIRONMENT = REPOSITORY / "tests/.venv-mlserver"
_UNAVAILABLE = REPOSITORY / "tests/.venv-mlserver.unavailable"


def why_unavailable() -> str | None:
    """The reason that `make setup` gave for not bringing MLServer; None where it did."""
    return _UNAVAILABLE.read_text().strip() if _UNAVAILABLE.exists() else None


def train_digits(folder: Path) -> list[dict]:
    """Writes light.joblib and heavy.joblib, two versions of one classifier; returns digits to ask about."""
    script = Path(__file__).with_name("train_digits.py")
    subprocess.run([_ENVIRONMENT / "bin/python", script, folder], check=True)
    return json.loads((folder / "inputs.json").read_text())


class MLServer:
    """One MLServer process with one model."""

    def __init__(self, folder: Path, name: str, version: str, model: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.infer_path = f"/v2/models/{name}/infer"
        folder.mkdir()
        settings = {
            "host": "127.0.0.1",
            "http_port": self.port,
            "grpc_port": free_port(),
            "metrics_port": free_port(),
            "parallel_workers": 0,
        }
        model_settings = {
            "name": name,
            "implementation": "mlserver_sklearn.SKLearnModel",
            "parameters": {"uri": str(model), "version": version},
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "model-settings.json").write_text(json.dumps(model_settings))
        command = [_ENVIRONMENT / "bin/mlserver", "start", folder]
        self.process = Process(f"mlserver {name}@{version}", command, folder / "log")

    def wait_ready(self) -> None:
        self.process.wait_until(self._is_ready, f"MLServer on {self.address} to be ready")

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"http://{self.address}/v2/health/ready", timeout=5).ok
        except requests.ConnectionError:
            return False

    def ask(self, body: bytes) -> dict:
        """Its own answer to an inference."""
        headers = {"content-type": "application/json"}
        answer = requests.post(f"http://{self.address}{self.infer_path}", body, headers=headers, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def stop(self) -> None:
        self.process.stop()


class Digits:
    """Versions `light` and `heavy` of one model, each on its own MLServer, and digits that neither was trained on."""

    def __init__(self, folder: Path) -> None:
        self.inputs = train_digits(folder)
        self.servers = {
            name: MLServer(folder / name, "digits", name, folder / f"{name}.joblib") for name in ("light", "heavy")
        }

    def __enter__(self) -> "Digits":
        try:
            for server in self.servers.values():
                server.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers.values():
            server.stop()


def inference_request(number: int, pixels: Sequence[float]) -> bytes:
    """An Open Inference (V2) request. Without an `id` MLServer makes one up, and no two answers are equal."""
    return json.dumps(
        {
            "id": f"digit-{number}",
            "inputs": [{"name": "predict", "shape": [1, 64], "datatype": "FP32", "data": pixels}],
            "outputs": [{"name": "predict"}, {"name": "predict_proba"}],
        }
    ).encode()
