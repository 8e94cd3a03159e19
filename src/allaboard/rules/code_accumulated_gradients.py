"""Mistakes in the accumulation of gradients over several batches: each rule reports one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_ACCELERATOR = "accelerate.Accelerator()"
_LOOPS = (ast.For, ast.AsyncFor)


class _Turn(NamedTuple):
    """A comparison that is true in one of several rounds of a loop: ``(counter + shift) % rounds == 0``."""

    comparison: ast.Compare
    counter: str
    rounds: str
    shift: int
    is_equal: bool
    """False if the comparison is true in all rounds but that one."""


def _turn_of(test: ast.expr) -> _Turn | None:
    """Return the comparison with a remainder that a condition consists of or contains."""
    for part in ast.walk(test):
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            continue
        remainder, operator = part.left, part.ops[0]
        if not isinstance(remainder, ast.BinOp) or not isinstance(remainder.op, ast.Mod):
            continue
        counted, rounds = remainder.left, ast.unparse(remainder.right)
        shift, compared = 0, part.comparators[0]
        if isinstance(counted, ast.BinOp) and isinstance(counted.op, ast.Add):
            if not isinstance(counted.right, ast.Constant) or counted.right.value != 1:
                return None
            counted, shift = counted.left, 1
        if ast.unparse(compared) == f"{rounds} - 1":
            shift += 1
        elif not isinstance(compared, ast.Constant) or compared.value != 0:
            return None
        if isinstance(counted, ast.Name) and isinstance(operator, (ast.Eq, ast.NotEq)):
            return _Turn(part, counted.id, rounds, shift, isinstance(operator, ast.Eq))
    return None


def _unsynchronised_turn(script: Script, no_sync: ast.Attribute) -> _Turn | None:
    """Return the comparison by which a round leaves out the synchronisation; None if it is another test."""
    child: ast.AST = no_sync
    for ancestor in script.ancestors(no_sync):
        if isinstance(ancestor, (ast.IfExp, ast.If)) and child is not ancestor.test:
            turn = _turn_of(ancestor.test)
            is_body = child is ancestor.body or (
                isinstance(ancestor.body, list) and child in ancestor.body
            )
            # Where all rounds but one leave it out, that one synchronises.
            return turn if turn is not None and turn.is_equal is not is_body else None
        if isinstance(ancestor, _LOOPS):
            return None
        child = ancestor
    return None


def _other_step(facts: ScriptFacts) -> Iterator[Claim]:
    if "no_sync" not in facts.source or "%" not in facts.source:
        return
    script = read_script(facts)
    for node in script.parents:
        if not isinstance(node, ast.Attribute) or node.attr != "no_sync":
            continue
        left_out = _unsynchronised_turn(script, node)
        loop = next((a for a in script.ancestors(node) if isinstance(a, _LOOPS)), None)
        if left_out is None or loop is None or not _is_target(loop, left_out.counter):
            continue
        for call in ast.walk(loop):
            if not _is_step(call):
                continue
            condition = next((a for a in script.ancestors(call) if isinstance(a, ast.If)), None)
            steps = _turn_of(condition.test) if condition is not None else None
            if steps is None or not steps.is_equal or loop not in script.ancestors(call):
                continue
            is_same_counter = (steps.counter, steps.rounds) == (left_out.counter, left_out.rounds)
            if not is_same_counter or abs(steps.shift - left_out.shift) != 1:
                continue
            yield Claim(
                summary=f"the optimizer steps where {ast.unparse(steps.comparison)}, and that round is "
                "under no_sync: what it adds to the gradients is never averaged",
                evidence=(
                    script.evidence_for(left_out.comparison),
                    script.evidence_for(steps.comparison),
                ),
                fix=_with_comparison(facts, script, left_out, steps),
                certainty=Certainty.LIKELY,
                where=script.place_of(left_out.comparison),
            )
            return


def _with_comparison(facts: ScriptFacts, script: Script, wrong: _Turn, right: _Turn) -> str:
    """Return the line of one comparison with the other in its place."""
    comparison = ast.unparse(right.comparison)
    if not wrong.is_equal:
        comparison = comparison.replace("==", "!=", 1)
    written = ast.get_source_segment(facts.source, wrong.comparison) or ""
    return script.source_line(wrong.comparison).replace(written, comparison, 1)


def _is_target(loop: ast.For | ast.AsyncFor, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(loop.target))


def _is_step(node: ast.AST) -> bool:
    """Return True for `optimizer.step()` and `scaler.step(optimizer)`, not for a scheduler's."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = ast.unparse(node.func.value).lower()
    return node.func.attr == "step" and any(word in owner for word in ("opt", "scaler"))


def _flag_too_late(facts: ScriptFacts) -> Iterator[Claim]:
    if "require_backward_grad_sync" not in facts.source:
        return
    script = read_script(facts)
    for node in [n for n in script.parents if isinstance(n, ast.Assign)]:
        target = node.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != "require_backward_grad_sync":
            continue
        block = _block_of(script, node)
        statements_before, statements_behind = (
            block[: block.index(node)],
            block[block.index(node) + 1 :],
        )
        model = ast.unparse(target.value)
        forwards = [
            n
            for s in statements_before
            for n in ast.walk(s)
            if isinstance(n, ast.Call) and ast.unparse(n.func) == model
        ]
        is_set = any("require_backward_grad_sync =" in ast.unparse(s) for s in statements_before)
        if (
            not forwards
            or is_set
            or not any(".backward(" in ast.unparse(s) for s in statements_behind)
        ):
            continue
        forward = forwards[-1]
        yield Claim(
            summary="this flag is set behind the forward, and DDP reads it in the forward: the round "
            "before decides what is averaged, and each rank steps by gradients of its own",
            evidence=(script.evidence_for(node), script.evidence_for(forward)),
            fix=f"{script.source_line(node)}   # before line {forward.lineno}",
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )
        return


def _block_of(script: Script, statement: ast.AST) -> list[ast.stmt]:
    parent = script.parents[statement]
    blocks = (getattr(parent, field, None) for field in ("body", "orelse", "finalbody"))
    return next((b for b in blocks if isinstance(b, list) and statement in b), [])


def _cleared_first(facts: ScriptFacts) -> Iterator[Claim]:
    if ".accumulate(" not in facts.source or "accelerat" not in facts.source:
        return
    script = read_script(facts)
    makers = script.calls_of("accelerate.Accelerator")
    count = call_argument(makers[0], "gradient_accumulation_steps") if len(makers) == 1 else None
    if count is None or (isinstance(count, ast.Constant) and count.value == 1):
        return
    for opening in script.calls_of(f"{_ACCELERATOR}.accumulate"):
        block = next((a for a in script.ancestors(opening) if isinstance(a, ast.With)), None)
        if block is None:
            continue
        calls_inside = [n for n in ast.walk(block) if isinstance(n, ast.Call)]
        cleared = [n for n in calls_inside if full_name(n.func, {}).endswith(".zero_grad")]
        backwards = [n for n in calls_inside if full_name(n.func, {}).endswith(".backward")]
        is_first = cleared and backwards and cleared[-1].lineno < backwards[0].lineno
        if not is_first or script.parents[script.parents[cleared[0]]] is not block:
            continue
        is_known = isinstance(count, ast.Constant)
        yield Claim(
            summary="in the round that synchronises, accelerate's zero_grad takes away what the rounds "
            "before it have accumulated: each step sees one batch"
            + ("" if is_known else f", where {ast.unparse(count)} is more than 1"),
            evidence=(script.evidence_for(cleared[0]), script.evidence_for(makers[0])),
            fix=f"{script.source_line(cleared[0])}   # behind the optimizer's step, in the same block",
            severity=Severity.ERROR if is_known else Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(cleared[0]),
        )
        return


_LOOP = """from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(net)
for i, x in enumerate(loader):
    with model.no_sync() if i % 4 != 0 else nullcontext():
        model(x).sum().backward()
    if (i + 1) % 4 == 0:
        opt.step()
"""
_FLAG = """from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(net)
for i in range(4):
    loss = model(batch())
    model.require_backward_grad_sync = i == 3
    loss.backward()
opt.step()
"""
_CLEARED = """from accelerate import Accelerator
accelerator = Accelerator(gradient_accumulation_steps=4)
model, opt, loader = accelerator.prepare(model, opt, loader)
for x in loader:
    with accelerator.accumulate(model):
        opt.zero_grad()
        accelerator.backward(model(x).sum())
        opt.step()
"""
_TAKEN_AWAY = (
    "in the round that synchronises, accelerate's zero_grad takes away what the rounds before it have "
    "accumulated: each step sees one batch"
)

RULES = {
    "code104_no_sync_at_the_step": script_rule(
        page="""The round in which the optimizer steps is one of those under `no_sync`.

## Why it matters
The gradients of a round under `no_sync` stay on the rank. If the round that ends an accumulation is one of
them, each rank steps by gradients of its own, and the models part without an error.

## What to do
Decide both by one test: `(i + 1) % n != 0` for `no_sync`, `(i + 1) % n == 0` for the step.
""",
        check=_other_step,
        fires_on={
            "the two tests count from 0 and from 1": (
                _LOOP,
                "the optimizer steps where (i + 1) % 4 == 0, and that round is under no_sync: what it adds "
                "to the gradients is never averaged",
            )
        },
        silent_on={
            "both tests count from 1": _LOOP.replace("if i % 4", "if (i + 1) % 4"),
            "both tests count from 0": _LOOP.replace("(i + 1) % 4 ==", "i % 4 =="),
            "the same round, written in another way": _LOOP.replace("i % 4 != 0", "i % 4 != 4 - 1"),
            "no_sync in the other branch": _LOOP.replace(
                "model.no_sync() if i % 4 != 0 else nullcontext()",
                "nullcontext() if (i + 1) % 4 == 0 else model.no_sync()",
            ),
            "another number of rounds": _LOOP.replace("(i + 1) % 4", "(i + 1) % 8"),
        },
    ),
    "code105_sync_flag_late": script_rule(
        page="""`require_backward_grad_sync` is set between the forward and the backward of a DDP model.

## Why it matters
DDP reads the flag in its forward, where it prepares what the backward averages. A value that is set behind
the forward counts for the next round: the last round is not averaged, and each rank steps by gradients of
its own.

## What to do
Set it before the forward, or use `no_sync` around both.
""",
        check=_flag_too_late,
        fires_on={
            "the flag is set before the backward alone": (
                _FLAG,
                "this flag is set behind the forward, and DDP reads it in the forward: the round before "
                "decides what is averaged, and each rank steps by gradients of its own",
            )
        },
        silent_on={
            "the flag is set before the forward": _FLAG.replace(
                "    loss = model(batch())\n    model.require_backward_grad_sync = i == 3\n",
                "    model.require_backward_grad_sync = i == 3\n    loss = model(batch())\n",
            ),
            "it is set back behind the backward": _FLAG.replace(
                "    model.require_backward_grad_sync = i == 3\n    loss.backward()\n",
                "    loss.backward()\n    model.require_backward_grad_sync = i == 3\n",
            ),
            "the forward of another model": _FLAG.replace("loss = model(", "loss = teacher("),
        },
    ),
    "code106_accumulation_cleared": script_rule(
        page="""Under accelerate, the gradients are cleared at the start of an accumulating block.

## Why it matters
Inside of `accelerator.accumulate`, `zero_grad` does nothing until the round that synchronises, and clears
the gradients there. At the start of the block it takes away what the rounds before have accumulated; each
step then sees one batch, and nothing says so.

## What to do
Call `zero_grad` behind `step`, in the same block.
""",
        check=_cleared_first,
        fires_on={"zero_grad begins the block": (_CLEARED, _TAKEN_AWAY)},
        silent_on={
            "zero_grad ends the block": _CLEARED.replace("        opt.zero_grad()\n", "")
            + "        opt.zero_grad()\n",
            "nothing is accumulated": _CLEARED.replace("steps=4", "steps=1"),
            "zero_grad before and after": _CLEARED + "        opt.zero_grad()\n",
            "the number of rounds is not given": _CLEARED.replace(
                "gradient_accumulation_steps=4", ""
            ),
        },
    ),
}
