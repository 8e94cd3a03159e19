"""A DistributedSampler shuffles, and `set_epoch` is never called.

## Why it matters
The sampler's order depends on its epoch number alone. Without `set_epoch`, every epoch has the same order,
and each rank sees the same part of the data for the whole training.

## What to do
Call `sampler.set_epoch(epoch)` as the first line of the epoch loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, call_argument, read_script


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    script = read_script(facts)
    if script.uses_launching_library or "set_epoch" in facts.source:
        return
    samplers = [
        call
        for call in script.calls_of("torch.utils.data.DistributedSampler")
        if not _is_false(call_argument(call, "shuffle", 3))
    ]
    epochs = _epoch_loop(script) or _endless_cycle(script)
    if not samplers or epochs is None:
        return
    variable = ast.unparse(epochs.target) if isinstance(epochs, ast.For) else "epoch"
    parent = script.parents.get(samplers[0])
    sampler = ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else "sampler"
    yield Claim(
        summary="set_epoch of the DistributedSampler is never called: every epoch has the same order",
        evidence=(script.evidence_for(samplers[0]), script.evidence_for(epochs)),
        fix=f"{sampler}.set_epoch({variable})   # first in the loop of line {epochs.lineno}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(epochs),
    )


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _epoch_loop(script: Script) -> ast.For | None:
    """Return the loop over epochs, recognised by its variable's name, or None."""
    for node in ast.walk(script.tree):
        if isinstance(node, ast.For) and "epoch" in ast.unparse(node.target).lower():
            return node
    return None


def _endless_cycle(script: Script) -> ast.While | None:
    """Return the `while True` of a generator that goes through its loader again and again."""
    for node in ast.walk(script.tree):
        is_endless = isinstance(node, ast.While) and ast.unparse(node.test) in ("True", "1")
        if not isinstance(node, ast.While) or not is_endless or len(node.body) != 1:
            continue
        passes, function = node.body[0], script.enclosing_function(node)
        names = [a.arg for a in function.args.args] if function is not None else []
        if not isinstance(passes, ast.For) or ast.unparse(passes.iter) not in names:
            continue
        if any(isinstance(n, ast.Yield) for n in ast.walk(passes)):
            return node
    return None


_HEAD = """from torch.utils.data import DataLoader, DistributedSampler
sampler = DistributedSampler(data)
loader = DataLoader(data, sampler=sampler)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a loop over epochs that never calls `set_epoch`": (
            ScriptFacts(
                source=_HEAD + "for epoch in range(9):\n    for x in loader:\n        train(x)\n"
            ),
            "set_epoch of the DistributedSampler is never called: every epoch has the same order",
        ),
        "a generator that goes through the loader without an end": (
            ScriptFacts(
                source=_HEAD + "def cycle(loader):\n    while True:\n        for x in loader:\n"
                "            yield x\nfor step in range(9):\n    train(next(cycle(loader)))\n"
            ),
            "set_epoch of the DistributedSampler is never called: every epoch has the same order",
        ),
    },
    silent_on={
        "a loop over epochs that calls `set_epoch`": ScriptFacts(
            source=_HEAD + "for epoch in range(9):\n    sampler.set_epoch(epoch)\n"
        ),
        "a single pass over the data": ScriptFacts(
            source=_HEAD + "for x in loader:\n    train(x)\n"
        ),
        "a DistributedSampler with `shuffle=False`": ScriptFacts(
            source=_HEAD.replace("(data)\n", "(data, shuffle=False)\n", 1)
            + "for epoch in range(9):\n    train(loader)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
