"""Rule files as data. What is written is JSON, which every YAML reader takes."""

import json
from collections.abc import Iterable, Mapping, Sequence

Document = dict[str, object]

USER_FROM_HEADER = {"user_id": {"from": "header:x-user-id", "type": "string"}}


def write(documents: Iterable[Document]) -> str:
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents)


def shard(name: str, *addresses: str) -> Document:
    return {"kind": "Shard", "name": name, "endpoints": [{"address": address} for address in addresses]}


def model(reference: str, on_shard: str, **fields: object) -> Document:
    """A Model version, from its `name@version`."""
    name, version = reference.split("@")
    return {"kind": "Model", "name": name, "version": version, "shard": on_shard, **fields}


def split_rule(split: Mapping[str, int], salt: str, name: str = "trial", unit: str = "user_id") -> Document:
    return {"name": name, "experiment": {"unit": unit, "salt": salt, "split": dict(split)}}


def objective(
    token: str,
    arms: Mapping[str, str],
    default: str,
    rules: Sequence[Document] = (),
    context: Mapping[str, object] = USER_FROM_HEADER,
    **fields: object,
) -> Document:
    """`arms`: Model version by Arm name."""
    return {
        "kind": "Objective",
        "token": token,
        "context": dict(context),
        "default": default,
        "arms": {name: {"model": reference} for name, reference in arms.items()},
        "rules": list(rules),
        **fields,
    }


def one_model(token: str, *addresses: str, **objective_fields: object) -> list[Document]:
    """An Objective with a single Arm `only`, served at these addresses."""
    name = token.lower().replace("_", "-")
    return [
        shard(f"shard-{name}", *addresses),
        model(f"{name}@1", f"shard-{name}"),
        objective(token, {"only": f"{name}@1"}, "only", **objective_fields),
    ]
