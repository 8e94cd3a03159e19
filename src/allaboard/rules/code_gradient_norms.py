"""Norms of gradients that are taken at the wrong side of their average: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.script_ast import Function, Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")
_ALL_REDUCE = "torch.distributed.all_reduce"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_OTHER_PARTS = re.compile(
    r"FSDP|FullySharded|fully_shard|tensor_parallel|DTensor|device_mesh|no_sync|new_group|ZeroRedundancy"
)
"""Matches scripts in which a rank may hold a part of the gradients alone."""


def _clipped_before(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "all_reduce" not in source or "clip_grad" not in source or _DDP.rpartition(".")[2] in source:
        return
    script = read_script(facts)
    averages = {
        f.name for f in script.parents if isinstance(f, ast.FunctionDef) and _averages(script, f)
    }
    for clip in script.calls_of(*_CLIPS):
        for statement in _following(script, clip):
            text = ast.unparse(statement)
            if ".step(" in text or ".backward(" in text:
                break
            call = statement.value if isinstance(statement, ast.Expr) else None
            is_average = isinstance(call, ast.Call) and _called_name(call) in averages
            if not is_average and not _reduces_gradient(script, statement):
                continue
            yield Claim(
                summary="each rank clips its own gradients, and they are averaged only behind that: the norm "
                "that is bounded is not that of the step",
                evidence=(script.evidence_for(clip), script.evidence_for(statement)),
                fix=f"{script.source_line(clip)}   # behind line {statement.lineno}",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(clip),
            )
            return


def _following(script: Script, call: ast.Call) -> list[ast.stmt]:
    """Return the statements behind that of a call, in the same block."""
    statement = next((a for a in script.ancestors(call) if isinstance(a, ast.stmt)), None)
    parent = script.parents.get(statement) if statement is not None else None
    block = getattr(parent, "body", [])
    if statement is None or not isinstance(block, list) or statement not in block:
        return []
    return block[block.index(statement) + 1 :]


def _called_name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _reduces_gradient(script: Script, node: ast.AST) -> bool:
    """Return True if a statement sums gradients over all ranks."""
    return any(
        isinstance(n, ast.Call)
        and script.call_name(n.func) == _ALL_REDUCE
        and n.args
        and ".grad" in ast.unparse(n.args[0])
        for n in ast.walk(node)
    )


def _averages(script: Script, function: Function) -> bool:
    return _reduces_gradient(script, function) and ".backward(" not in ast.unparse(function)


def _summed_again(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "all_reduce" not in source or ".grad" not in source or _OTHER_PARTS.search(source):
        return
    script = read_script(facts)
    if not script.calls_of(_DDP):
        return
    for call in script.calls_of(_ALL_REDUCE):
        argument = call.args[0] if call.args else None
        values = script.ranks.bound_values(argument) if isinstance(argument, ast.Name) else []
        value = values[0] if len(values) == 1 else None
        text = ast.unparse(value) if value is not None else ""
        is_norm = ".grad" in text and any(w in text for w in ("norm", "pow(2)", "** 2", "square"))
        if not is_norm or call_argument(call, "group", 2) is not None or value is None:
            continue
        if any(w in ast.unparse(s) for s in _following(script, call)[:2] for w in ("world", "/=")):
            continue
        yield Claim(
            summary=f"DDP has averaged these gradients, and every rank has all of them: "
            f"{ast.unparse(call.args[0])} is as many times too large as there are ranks",
            evidence=(script.evidence_for(call), script.evidence_for(value)),
            fix="torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)   # without an all_reduce",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


_BY_HAND = """import torch
import torch.distributed as dist
dist.init_process_group("nccl")
def average(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
for x in loader:
    model(x).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    average(model)
    opt.step()
"""
_NORM = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
model = DistributedDataParallel(net)
for x in loader:
    model(x).sum().backward()
    total = sum(p.grad.pow(2).sum() for p in model.parameters())
    dist.all_reduce(total)
    clip(model, total.sqrt())
    opt.step()
"""

RULES = {
    "code122_clipped_by_own_norm": script_rule(
        page="""Gradients are clipped before the ranks have averaged them.

## Why it matters
Each rank scales its own gradients by its own norm; the average of what is left has another norm, and a rank
with a large gradient counts for less than the others.

## What to do
Average first, then clip: the norm is the same on every rank then.
""",
        check=_clipped_before,
        fires_on={
            "clipped, then averaged by the script": (
                _BY_HAND,
                "each rank clips its own gradients, and they are averaged only behind that: the norm that is "
                "bounded is not that of the step",
            )
        },
        silent_on={
            "averaged, then clipped": _BY_HAND.replace("    average(model)\n", "").replace(
                "    torch.nn", "    average(model)\n    torch.nn"
            ),
            "DDP averages in its backward": _BY_HAND.replace(
                "def average", "model = DistributedDataParallel(model)\ndef average"
            ),
            "another value is reduced": _BY_HAND.replace(
                "all_reduce(p.grad)", "all_reduce(p.data)"
            ),
        },
    ),
    "code123_norm_summed_again": script_rule(
        page="""The norm of gradients that DDP has averaged is summed over the ranks once more.

## Why it matters
Behind the backward of a DDP model, each rank has the whole averaged gradient. A sum of its squared norm over
the ranks counts it once for each of them: gradients are clipped by the square root of the number of ranks
more than they should be. Only where each rank holds a part of the gradients is such a sum right.

## What to do
`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)`, without an all_reduce.
""",
        check=_summed_again,
        fires_on={
            "the squared norm is reduced": (
                _NORM,
                "DDP has averaged these gradients, and every rank has all of them: total is as many times "
                "too large as there are ranks",
            )
        },
        silent_on={
            "nothing is reduced": _NORM.replace("    dist.all_reduce(total)\n", ""),
            "the model is in shards": _NORM.replace(
                "import torch\n", "import torch\nFSDP = fully_shard\n", 1
            ),
            "the sum is divided": _NORM.replace(
                "reduce(total)\n", "reduce(total)\n    total /= dist.get_world_size()\n"
            ),
            "a loss is reduced": _NORM.replace("p.grad.pow(2).sum() for p in", "p.sum() for p in"),
        },
    ),
}
