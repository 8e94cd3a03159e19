"""A distributed PyTorch script feeds every rank from a DataLoader without a distributed sampler.

## Why it matters
Each rank then reads the whole dataset in the same order: N ranks do the same work N times over.
Nothing fails; an epoch takes as long as on one process, and the batches are effectively equal.

## What to do
`sampler = DistributedSampler(dataset)` and `DataLoader(dataset, sampler=sampler, …)`, without
`shuffle=True`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.script import Script, argument, read_script

_LOADER = "torch.utils.data.DataLoader"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_SHARDS = ("shard", "split_dataset_by_node", "Subset", "random_split", "split_by_node")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    loaders = script.called(_LOADER)
    group = script.called("torch.distributed.init_process_group") or script.called(_DDP)
    if not loaders or not group or script.launched_by_library:
        return
    yield from _unused(script, loaders)
    if _sharded(script):
        return
    for call in loaders:
        given = {k.arg for k in call.keywords}
        if None in given or {"sampler", "batch_sampler"} & given or len(call.args) > 3:
            return
    train = loaders[0]
    dataset = argument(train, "dataset", 0)
    name = ast.unparse(dataset) if dataset is not None else "dataset"
    yield Claim(
        summary="every rank reads the whole dataset: the DataLoader has no DistributedSampler",
        evidence=(script.evidence(train), script.evidence(group[0])),
        fix=f"DataLoader({name[:40]}, sampler=DistributedSampler({name[:40]}), …)",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place(train),
    )


def _unused(script: Script, loaders: list[ast.Call]) -> Iterator[Claim]:
    """A sampler that is made and handed to nobody, beside a loader that shuffles by itself."""
    shuffles = [c for c in loaders if _true(argument(c, "shuffle", 2)) and len(c.args) < 4]
    plain = [c for c in shuffles if not {"sampler", None} & {k.arg for k in c.keywords}]
    made = [n for n in ast.walk(script.tree) if isinstance(n, ast.Assign) and _sampler(n.value)]
    for assign in made:
        target = assign.targets[0]
        if not isinstance(target, ast.Name) or not plain or _used(script, target.id):
            continue
        yield Claim(
            summary=f"{target.id} is handed to no DataLoader: every rank reads the whole dataset",
            evidence=(script.evidence(assign), script.evidence(plain[0])),
            fix=f"sampler={target.id} instead of shuffle=True",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place(plain[0]),
        )


def _true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _sampler(node: ast.expr) -> bool:
    name = node.func if isinstance(node, ast.Call) else None
    text = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    return text == "DistributedSampler"


def _used(script: Script, name: str) -> bool:
    """Whether the variable is read for more than to be told the epoch."""
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            above = script.parents.get(node)
            if not (isinstance(above, ast.Attribute) and above.attr == "set_epoch"):
                return True
    return False


def _sharded(script: Script) -> bool:
    """Whether anything in the script divides the data in another way."""
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Name) and (node.id.endswith("Sampler") or node.id in _SHARDS):
            return True
        if isinstance(node, ast.Attribute) and (
            node.attr.endswith("Sampler") or node.attr in _SHARDS
        ):
            return True
        if isinstance(node, ast.ClassDef) and "IterableDataset" in map(ast.unparse, node.bases):
            return True
        if isinstance(node, ast.Slice) and node.step is not None:
            return True  # data[rank::world_size]
    return any("IterableDataset" in full for full in script.names.values())


_HEAD = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler as Spread
dist.init_process_group("gloo")
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "shuffled alone": (
            ScriptFacts(source=_HEAD + "loader = DataLoader(data, batch_size=8, shuffle=True)\n"),
            "every rank reads the whole dataset: the DataLoader has no DistributedSampler",
        ),
        "a sampler that nobody gets": (
            ScriptFacts(
                source=_HEAD.replace(" as Spread", "")
                + "s = DistributedSampler(data)\nloader = DataLoader(data, shuffle=True)\n"
                "s.set_epoch(1)\n"
            ),
            "s is handed to no DataLoader: every rank reads the whole dataset",
        ),
    },
    silent_on={
        "a sampler": ScriptFacts(
            source=_HEAD + "loader = DataLoader(data, sampler=Spread(data))\n"
        ),
        "a sampler, and an evaluation that shuffles": ScriptFacts(
            source=_HEAD.replace(" as Spread", "")
            + "s = DistributedSampler(data)\nloader = DataLoader(data, sampler=s)\n"
            "other = DataLoader(test, shuffle=True)\n"
        ),
        "sliced by hand": ScriptFacts(
            source=_HEAD + "mine = data[dist.get_rank()::2]\nloader = DataLoader(mine)\n"
        ),
        "one process": ScriptFacts(
            source="from torch.utils.data import DataLoader\nloader = DataLoader(data)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
