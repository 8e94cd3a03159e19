"""What the accelerate and DeepSpeed configs that were given say about shards of the scripts' models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from allaboard.facts import Material, Node, ScriptFacts


def with_sharding(
    scripts: Sequence[ScriptFacts], materials: Iterable[Material]
) -> list[ScriptFacts]:
    """Return the scripts, each with what all config files given beside them agree on."""
    kinds = {_sharding(m.tree) for m in materials if m.tree is not None} - {None}
    if len(kinds) != 1:
        return list(scripts)
    (kind,) = kinds
    return [msgspec.structs.replace(script, sharding=kind or "") for script in scripts]


def _sharding(tree: Node) -> str | None:
    """Return "fsdp", "zero3", "deepspeed" or ""; None if this is no config of accelerate or DeepSpeed."""
    if "zero_optimization" in tree.items:
        stage = tree.items["zero_optimization"].items.get("stage")
        return "zero3" if stage is not None and stage.text == "3" else "deepspeed"
    kind = tree.items.get("distributed_type")
    if kind is None:
        return None
    if kind.text == "FSDP":
        return "fsdp"
    if kind.text != "DEEPSPEED":
        return ""
    config = tree.items.get("deepspeed_config")
    stage = config.items.get("zero_stage") if config is not None else None
    return "zero3" if stage is not None and stage.text == "3" else "deepspeed"
