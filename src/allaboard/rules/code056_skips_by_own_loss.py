"""A rank leaves out a step because of its own loss.

## Why it matters
Under DDP, `backward` meets the other ranks: it averages their gradients. The loss of a rank's own batch can
be NaN on one rank and finite on the others. The rank that goes on with its next batch does not enter
`backward`, and the others wait for it there, or pair with its next one.

## What to do
Decide together: `skip = torch.isnan(loss).float(); dist.all_reduce(skip)`, and leave the step out on every
rank if `skip > 0`. Or replace the loss, `torch.nan_to_num(loss)`, and go through `backward` on every rank.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, read_script

_ASKS_IF_FINITE = ("isnan", "isfinite", "isinf", "is_nan", "is_finite")
_AGREES = re.compile(r"reduce|gather|broadcast|sync|barrier|agree|any_rank|all_ranks", re.I)
"""Matches names of calls by which ranks may agree on what one of them saw."""
_DDP = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
)
_LIGHTNING_DDP = re.compile(r"(?:strategy|accelerator)\s*=\s*['\"](?:ddp|fsdp)")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(word in facts.source for word in _ASKS_IF_FINITE):
        return
    script = read_script(facts)
    averages = bool(script.calls_of(*_DDP)) or (
        "accelerate" in facts.source and bool(script.method_calls("prepare"))
    )
    for condition in [n for n in script.parents if isinstance(n, ast.If)]:
        leaving = condition.body[-1]
        asks_if_finite = _asks_if_finite(condition.test)
        if not asks_if_finite:
            continue
        if isinstance(leaving, ast.Continue) and averages and not condition.orelse:
            backward = _backward_after(script, condition)
            if backward is not None and not _is_agreed(script, condition):
                yield _claim(script, leaving, condition, backward)
        elif (
            isinstance(leaving, ast.Return)
            and (leaving.value is None or ast.unparse(leaving.value) == "None")
            and _LIGHTNING_DDP.search(facts.source)
            and getattr(script.enclosing_function(condition), "name", "") == "training_step"
            and not _is_agreed(script, condition)
        ):
            yield _claim(script, leaving, condition, None)


def _asks_if_finite(test: ast.expr) -> bool:
    """Return True if a condition asks whether a loss is a number."""
    return any(
        isinstance(n, ast.Call)
        and ast.unparse(n.func).rpartition(".")[2] in _ASKS_IF_FINITE
        and "loss" in ast.unparse(n).lower()
        for n in ast.walk(test)
    )


def _backward_after(script: Script, condition: ast.If) -> ast.Call | None:
    """Return the `backward` that the loop comes to after the condition, in the same round; None if there is
    none."""
    loop = next(
        (a for a in script.ancestors(condition) if isinstance(a, (ast.For, ast.While))), None
    )
    if loop is None:
        return None
    loop_nodes = set(ast.walk(loop))
    for statement in script.statements_after(condition):
        if statement not in loop_nodes:
            continue
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "backward"
            ):
                return node
    return None


def _is_agreed(script: Script, condition: ast.If) -> bool:
    """Return True if a call before the decision, or in it, may make all ranks decide alike."""
    enclosing_scope = script.enclosing_function(condition) or script.tree
    return any(
        isinstance(n, ast.Call)
        and n.lineno <= (condition.body[-1].end_lineno or condition.lineno)
        and _AGREES.search(ast.unparse(n.func).rpartition(".")[2])
        for n in ast.walk(enclosing_scope)
    )


def _claim(
    script: Script, leaving: ast.stmt, condition: ast.If, backward: ast.Call | None
) -> Claim:
    awaited_call = (
        f"the backward of line {backward.lineno}" if backward is not None else "their backward"
    )
    evidence = [script.evidence_for(leaving), script.evidence_for(condition)]
    if backward is not None:
        evidence.append(script.evidence_for(backward))
    return Claim(
        summary="a rank whose own loss is not finite leaves out the step, and the others wait for it in "
        f"{awaited_call}",
        evidence=tuple(evidence),
        fix="skip = torch.isnan(loss).float(); dist.all_reduce(skip)   # then leave it out on every rank",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(leaving),
    )


_LOOP = (
    "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(net)\n"
    "for x in data:\n    loss = model(x)\nDECIDE    if torch.isnan(loss):\n        print('skipped')\n"
    "        continue\n    loss.backward()\n"
)
_STEP = (
    "import lightning as L\nimport torch\nclass M(L.LightningModule):\n"
    "    def training_step(self, batch, i):\n        loss = self.net(batch)\n"
    "        if torch.isnan(loss):\n            return None\n        return loss\n"
    "L.Trainer(devices=4, strategy='ddp').fit(M())\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a loop under DDP skips the backward if the loss is NaN": (
            ScriptFacts(source=_LOOP.replace("DECIDE", "")),
            "a rank whose own loss is not finite leaves out the step, and the others wait for it in the "
            "backward of line 9",
        ),
        "`training_step` of Lightning returns None if the loss is NaN": (
            ScriptFacts(source=_STEP),
            "a rank whose own loss is not finite leaves out the step, and the others wait for it in their "
            "backward",
        ),
    },
    silent_on={
        "the ranks average the loss before they decide": ScriptFacts(
            source=_LOOP.replace("DECIDE", "    loss = reduce_mean(loss)\n")
        ),
        "a loss that is NaN ends the program": ScriptFacts(
            source=_LOOP.replace("DECIDE", "").replace("continue", "raise SystemExit(1)")
        ),
        "a model that DDP does not wrap": ScriptFacts(
            source=_LOOP.replace("DECIDE", "").replace("DDP(net)", "net")
        ),
        "a loop under DDP checks the loss after the backward": ScriptFacts(
            source=_LOOP.replace("DECIDE", "    loss.backward()\n").replace(
                "    loss.backward()\n", "", 2
            )
        ),
        "`training_step` of Lightning returns None, and no `ddp` strategy is given": ScriptFacts(
            source=_STEP.replace(", strategy='ddp'", "")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
