"""Buffers of a DDP model that a second forward overwrites while the backward of the first still needs "
"them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule

_DDP = "torch.nn.parallel.DistributedDataParallel"
_NORM = re.compile(r"BatchNorm\d?d?\(")
_MOVES = ("to", "cuda", "float", "half", "train")
_WITHOUT_GRADIENT = ("no_grad", "inference_mode")


def _overwritten(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "BatchNorm" not in source or "DistributedDataParallel" not in source:
        return
    if "SyncBatchNorm" in source or "broadcast_buffers" in source:
        return
    script = read_script(facts)
    wraps = {
        full_name(parent.targets[0], {}): call
        for call in script.calls_of(_DDP)
        if isinstance(parent := script.parents[call], ast.Assign) and _has_norm(script, call)
    }
    for block in (b for n in script.parents for b in _blocks(n)) if wraps else ():
        for name, wrap in wraps.items():
            calls = _forwards_of_one_backward(block, name)
            if len(calls) < 2:
                continue
            yield Claim(
                summary=f"{name} runs twice before one backward, and DDP broadcasts its buffers in each "
                'forward: that of BatchNorm ends with "modified by an inplace operation"',
                evidence=tuple(script.evidence_for(c) for c in (calls[1], calls[0], wrap)),
                fix=f"{ast.unparse(wrap)[:-1]}, broadcast_buffers=False)   # or SyncBatchNorm, or one "
                "forward of both batches",
                certainty=Certainty.LIKELY,
                where=script.place_of(calls[1]),
            )
            return


def _has_norm(script: Script, wrap: ast.Call) -> bool:
    """Return True if the class of the wrapped model, or one that it uses, has batch normalisation."""
    model = resolve(script, wrap.args[0]) if wrap.args else None
    while (
        isinstance(model, ast.Call)
        and isinstance(model.func, ast.Attribute)
        and model.func.attr in _MOVES
    ):
        model = resolve(script, model.func.value)
    name = model.func.id if isinstance(model, ast.Call) and isinstance(model.func, ast.Name) else ""
    read_classes, to_read = set[str](), [name]
    while to_read:
        body = script.classes.get(to_read.pop())
        if body is None or body.name in read_classes:
            continue
        read_classes.add(body.name)
        if _NORM.search(ast.unparse(body)):
            return True
        to_read += [n.id for n in ast.walk(body) if isinstance(n, ast.Name)]
    return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block, with those inside of its contexts that keep gradients."""
    for statement in block:
        if not isinstance(statement, ast.With):
            yield statement
        elif not any(
            w in ast.unparse(i.context_expr) for i in statement.items for w in _WITHOUT_GRADIENT
        ):
            yield from _statements(statement.body)


def _forwards_of_one_backward(block: list[ast.stmt], model: str) -> list[ast.Call]:
    """Return the calls of a model whose outputs meet in the loss of one backward; the first such backward."""
    made_by: dict[str, list[ast.Call]] = {}
    for statement in _statements(block):
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            forwards = _forwards_in(statement.value, model, made_by)
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            for name in names:
                kept_forwards = (
                    made_by.get(name, []) if isinstance(statement, ast.AugAssign) else []
                )
                made_by[name] = list(dict.fromkeys([*kept_forwards, *forwards]))
        elif isinstance(statement, ast.Expr) and ".backward(" in ast.unparse(statement):
            forwards = _forwards_in(statement.value, model, made_by)
            if len(forwards) > 1:
                return forwards
    return []


def _forwards_in(value: ast.expr, model: str, made_by: dict[str, list[ast.Call]]) -> list[ast.Call]:
    """Return the forwards by which an expression was computed, in the text's order."""
    method = (
        value.func.attr
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
        else ""
    )
    if method in ("detach", "item"):
        return []
    if isinstance(value, ast.Call) and full_name(value.func, {}) == model:
        return [value]
    if isinstance(value, ast.Name):
        return made_by.get(value.id, [])
    children = [c.value if isinstance(c, ast.keyword) else c for c in ast.iter_child_nodes(value)]
    forwards = [
        f for c in children if isinstance(c, ast.expr) for f in _forwards_in(c, model, made_by)
    ]
    return list(dict.fromkeys(forwards))


_TWICE = """import torch
from torch.nn.parallel import DistributedDataParallel
class Net(torch.nn.Module):
    def __init__(self):
        self.norm = torch.nn.BatchNorm2d(8)
net = DistributedDataParallel(Net().cuda())
for real, fake in loader:
    a = net(real)
    b = net(fake.detach())
    loss = bce(a, 1) + bce(b, 0)
    loss.backward()
"""

RULES = {
    "code121_buffers_overwritten": script_rule(
        page="""A DDP model with batch normalisation runs twice before one backward.

## Why it matters
DDP broadcasts the model's buffers at the start of each forward, in place. Batch normalisation keeps its
running statistics for the backward; the second forward overwrites those of the first, and the backward ends
with "one of the variables needed for gradient computation has been modified by an inplace operation". The
same script runs without DDP.

## What to do
Pass `broadcast_buffers=False`, convert the model by `SyncBatchNorm.convert_sync_batchnorm`, or run both
batches in one forward.
""",
        check=_overwritten,
        fires_on={
            "a discriminator that sees real and fake": (
                _TWICE,
                "net runs twice before one backward, and DDP broadcasts its buffers in each forward: that of "
                'BatchNorm ends with "modified by an inplace operation"',
            )
        },
        silent_on={
            "a backward after each forward": _TWICE.replace(
                "    a = net(real)\n", "    a = net(real)\n    a.sum().backward()\n"
            ).replace("bce(a, 1) + ", ""),
            "one forward of both batches": _TWICE.replace(
                "    a = net(real)\n    b = net(fake.detach())\n",
                "    a, b = net(cat(real, fake))\n",
            ),
            "buffers are not broadcast": _TWICE.replace(
                "cuda())", "cuda(), broadcast_buffers=False)"
            ),
            "a model without buffers": _TWICE.replace("BatchNorm2d", "InstanceNorm2d"),
            "the first output is only looked at": _TWICE.replace(
                "a = net(real)", "a = net(real).detach()"
            ),
            "the first forward keeps no gradients": _TWICE.replace(
                "    a = net(real)\n", "    with torch.no_grad():\n        a = net(real)\n"
            ),
        },
    ),
}
