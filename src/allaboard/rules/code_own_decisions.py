"""Mistakes by which a rank leaves the others because of what it alone sees: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import FRAMEWORK_WORDS
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.steps.own_decisions import OwnDecision, find_own_decisions

_JOIN = re.compile(r"\.join\(\)\s*:|\bJoin\(\[|hvd\.join\(")
"""Matches what lets ranks have different numbers of steps."""
_STOPS = {
    "clock": "its own clock",
    "chance": "its own random numbers",
    "memory": "its own memory",
    "signal": "a signal that it alone has got",
}
"""What lets a rank stop, by the kind of the value; its share of the data for all others."""
_LEAVES = {
    "batch": "whose own batch has nothing to work on",
    "exception": "whose own batch raises an exception",
    "nan": "whose own loss is not finite",
    "loss": "for whose own batch this condition holds",
    "clock": "on whose own clock this condition holds",
    "chance": "whose own random number says so",
    "memory": "whose own memory says so",
    "signal": "that has got a signal",
}
"""Which rank leaves out a step, by the kind of the value."""
_ENTERS = {
    **{kind: text for kind, text in _LEAVES.items() if kind not in ("batch", "nan")},
    "batch": "whose own batch has something to work on",
    "nan": "for whose own loss this condition holds",
    "signal": "that have got a signal",
}
"""Which ranks enter a call, by the kind of the value."""


def _decisions(facts: ScriptFacts) -> Iterator[tuple[Script, OwnDecision]]:
    if any(w in facts.source for w in FRAMEWORK_WORDS) and not _JOIN.search(facts.source):
        script = read_script(facts)
        for decision in find_own_decisions(script):
            yield script, decision


def _stops_alone(facts: ScriptFacts) -> Iterator[Claim]:
    yield from _stopped_by_one(facts)
    for script, decision in _decisions(facts):
        if decision.effect == "stops":
            yield _claim(
                script,
                decision,
                decision.condition,
                f"each rank decides by {_STOPS.get(decision.kind, 'its own share of the data')} when to "
                "stop: the first that leaves the loop lets the others wait in their next step",
                "dist.all_reduce(stop, op=dist.ReduceOp.MAX)   # before the decision, on all ranks",
            )
            return


def _skips_by_own_loss(facts: ScriptFacts) -> Iterator[Claim]:
    for script, decision in _decisions(facts):
        if decision.effect == "skips" and decision.kind == "nan":
            yield _left_out(script, decision)


def _met_by_own_batch(facts: ScriptFacts) -> Iterator[Claim]:
    for script, decision in _decisions(facts):
        if decision.effect == "skips" and decision.kind != "nan":
            yield _left_out(script, decision)
        elif decision.effect == "enters" and decision.call is not None:
            where = script.reached_where(decision.call, decision.condition)  # type: ignore[arg-type]
            yield _claim(
                script,
                decision,
                decision.call,
                f"{decision.entered} is entered only by ranks {_ENTERS[decision.kind]}: {where}",
                f"{script.source_line(decision.call)}   # on every rank, outside of the if of line "
                f"{decision.condition.lineno}",
            )


def _left_out(script: Script, decision: OwnDecision) -> Claim:
    call = decision.call
    line = f"the {decision.entered} of line {call.lineno}" if call else f"their {decision.entered}"
    fix = "skip = torch.isnan(loss).float(); dist.all_reduce(skip)   # then leave it out on every rank"
    if decision.kind in ("batch", "exception") and "backward" in decision.entered:
        fix = "loss = 0 * sum(p.sum() for p in model.parameters())   # and go through the step on every rank"
    return _claim(
        script,
        decision,
        decision.leaving or decision.condition,
        f"a rank {_LEAVES[decision.kind]} leaves out the step, and the others wait for it in {line}",
        fix,
    )


def _claim(script: Script, decision: OwnDecision, place: ast.AST, summary: str, fix: str) -> Claim:
    """Return a claim at a place, with the other places of the decision as evidence."""
    places = dict.fromkeys(
        n for n in (place, decision.condition, decision.leaving, decision.call) if n is not None
    )
    return Claim(
        summary=summary,
        evidence=tuple(script.evidence_for(n) for n in places),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(place),
    )


_STOP_FIELDS = re.compile(r"(?:\w+\.)*(?:should_stop|should_training_stop|stop_training)")
"""Matches the attributes by which a trainer of Lightning, transformers or Keras is told to stop."""
_FLAG = re.compile(r"\w*(?:stop|done|finished|quit|terminate|abort|converged)\w*", re.I)


def _stopped_by_one(facts: ScriptFacts) -> Iterator[Claim]:
    """Report a flag that ends the training, and that some ranks set for themselves alone."""
    if not any(w in facts.source for w in FRAMEWORK_WORDS):
        return
    script = read_script(facts)
    for node in [n for n in script.parents if isinstance(n, (ast.Assign, ast.Break))]:
        condition = script.rank_condition(node)
        if condition is None or condition.orelse or script.is_after(node, condition):
            continue
        ended = _ended_by(script, node)
        if ended is None or _may_be_shared(script, node):
            continue
        flag = "leaves the loop" if isinstance(node, ast.Break) else f"sets {ended}"
        yield Claim(
            summary=f"only the rank that comes here {flag}: the others go on training, and wait for it in "
            "their next step",
            evidence=(script.evidence_for(node), script.evidence_for(condition)),
            fix="dist.broadcast(stop, src=0)   # the decision, on all ranks, before any of them stops",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )
        return


def _ended_by(script: Script, node: ast.Assign | ast.Break) -> str | None:
    """Return the flag by which a statement ends the training on its own rank, "" for a `break`; None if it
    does not."""
    if isinstance(node, ast.Break):
        loop = next(
            (a for a in script.ancestors(node) if isinstance(a, (ast.For, ast.While))), None
        )
        is_inside = loop is not None and script.rank_condition(node) in set(ast.walk(loop))
        return "" if loop is not None and is_inside and _trains(script, loop) else None
    target = ast.unparse(node.targets[0])
    if not isinstance(node.value, ast.Constant) or node.value.value is not True:
        return None
    if _STOP_FIELDS.fullmatch(target) and "." in target:
        return target
    if not _FLAG.fullmatch(target):
        return None
    for condition in [n for n in script.parents if isinstance(n, ast.If)]:
        loop = next(
            (a for a in script.ancestors(condition) if isinstance(a, (ast.For, ast.While))), None
        )
        if (
            ast.unparse(condition.test) == target
            and isinstance(condition.body[-1], ast.Break)
            and script.rank_condition(condition.body[-1]) is None
            and script.enclosing_function(condition) is script.enclosing_function(node)
            and loop is not None
            and _trains(script, loop)
        ):
            return target
    return None


def _trains(script: Script, loop: ast.For | ast.While) -> bool:
    """Return True if each round of a loop does something that all ranks have to do together."""
    return any(
        isinstance(n, ast.Call)
        and ast.unparse(n.func).rpartition(".")[2] in ("backward", "all_reduce", "barrier")
        and script.rank_condition(n) is None
        for n in ast.walk(loop)
    )


def _may_be_shared(script: Script, node: ast.AST) -> bool:
    """Return True if a call of the function may let the ranks agree on the decision."""
    scope: ast.AST = script.enclosing_function(node) or script.tree
    names = (
        ast.unparse(n.func).rpartition(".")[2] for n in ast.walk(scope) if isinstance(n, ast.Call)
    )
    return any(_SHARES.search(name) for name in names)


_SHARES = re.compile(
    r"broadcast|bcast|all_?reduce|all_?gather|reduce_boolean|sync_stop|agree", re.I
)
_HEAD = (
    "import random\nimport time\nimport torch\nimport torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n"
    'dist.init_process_group("nccl")\nrank = dist.get_rank()\n'
)
_OWN_LOSS = (
    _HEAD + "model = DistributedDataParallel(net)\nfor x in data:\n    loss = model(x).sum()\n"
    "    loss.backward()\n    if loss.item() < 0.1:\n        break\n"
)
_STOP_LOOP = (
    _HEAD + "a, b = DistributedSampler(train), DistributedSampler(test)\n"
    "model = DistributedDataParallel(net)\nfor epoch in range(9):\n"
    "    loss.backward()\n    stop(validate(b))\n    if stop.early_stop:\n        break\n"
)
_CALLBACK = (
    "import lightning as L\nclass C(L.Callback):\n"
    "    def on_train_batch_end(self, trainer, module, outputs, batch, i):\n"
    "        if trainer.is_global_zero and asked():\n            trainer.should_stop = True\n"
)
_BREAK = (
    _HEAD + "for epoch in range(9):\n    loss.backward()\n    if rank == 0 and good(validate()):\n"
    "        ACT\n"
)
_NAN_LOOP = (
    "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(net)\n"
    "for x in data:\n    loss = model(x)\nDECIDE    if torch.isnan(loss):\n        print('skipped')\n"
    "        continue\n    loss.backward()\n"
)
_NAN_STEP = (
    "import lightning as L\nimport torch\nclass M(L.LightningModule):\n"
    "    def training_step(self, batch, i):\n        loss = self.net(batch)\n"
    "        if torch.isnan(loss):\n            return None\n        return loss\n"
    "L.Trainer(devices=4, strategy='ddp').fit(M())\n"
)

_BATCHES = (
    "import os\nimport torch\nimport torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    'dist.init_process_group("nccl")\nrank, world = dist.get_rank(), dist.get_world_size()\n'
    "model = DDP(net)\n"
)
_LOOP = (
    _BATCHES + "for i, (images, boxes) in enumerate(loader):\n    if TEST:\n        continue\n"
    "    loss = model(images)\n    loss.backward()\n"
)
_INSIDE = (
    _BATCHES + "for batch in loader:\n    mask = batch['mask'] > 0\n    if mask.any():\n"
    "        loss = model(batch['x'], mask)\n        loss.backward()\n    optimizer.step()\n"
)
_HANDLER = (
    _BATCHES
    + "for batch in loader:\n    try:\n        x = prepare(batch)\n    except ValueError:\n"
    "        continue\n    model(x).sum().backward()\n"
)
_LIGHTNING = (
    "import lightning as L\nimport torchmetrics\nclass M(L.LightningModule):\n"
    "    def __init__(self):\n        self.f1 = torchmetrics.F1Score('binary')\n"
    "    def validation_step(self, batch, i):\n        known = batch['y'] >= 0\n"
    "        if known.sum() > 0:\n            CALL\n"
    "trainer = L.Trainer(devices=4, strategy='ddp')\n"
)
_LEFT_OUT = (
    "a rank whose own batch has nothing to work on leaves out the step, and the others wait for it "
    "in "
)
_STOPS_ALONE = (
    "each rank decides by its own share of the data when to stop: the first that leaves the loop lets the "
    "others wait in their next step"
)

RULES = {
    "code053_stops_alone": script_rule(
        page="""Each rank decides by itself when to stop.

## Why it matters
Each rank validates on its own share of the data, so its loss differs from the others'. The first rank whose
patience ends leaves the loop; the others wait for it in their next backward or barrier, until the timeout.
The same happens if only rank 0 sets `trainer.should_stop`, or breaks out of the loop.

## What to do
Reduce the value over all ranks before the decision, or let rank 0 decide and broadcast it.
""",
        check=_stops_alone,
        fires_on={
            "the loop ends when the loss of the rank's own batch is small": (
                _OWN_LOSS,
                _STOPS_ALONE,
            ),
            "each rank stops early by its own share of the validation data": (
                _STOP_LOOP,
                "each rank decides by its own share of the data when to stop: the first that leaves the loop "
                "lets the others wait in their next step",
            ),
            "only rank 0 sets `trainer.should_stop` in Lightning": (
                _CALLBACK,
                "only the rank that comes here sets trainer.should_stop: the others go on training, and wait "
                "for it in their next step",
            ),
            "only rank 0 breaks out of the loop": (
                _BREAK.replace("ACT", "break"),
                "only the rank that comes here leaves the loop: the others go on training, and wait for it "
                "in their next step",
            ),
            "only rank 0 sets the flag that ends the loop": (
                _BREAK.replace("ACT", "stop = True") + "    if stop:\n        break\n",
                "only the rank that comes here sets stop: the others go on training, and wait for it in "
                "their next step",
            ),
        },
        silent_on={
            "the loop ends when the averaged loss is small": _OWN_LOSS.replace(
                "    if", "    dist.all_reduce(loss)\n    if"
            ),
            "the loop ends after a number of steps": _OWN_LOSS.replace(
                "loss.item() < 0.1", "step > 9"
            ),
            "the loop trains a model without DDP": _OWN_LOSS.replace(
                "DistributedDataParallel(net)", "net"
            ),
            "Lightning broadcasts `trainer.should_stop` to all ranks": _CALLBACK
            + "        trainer.should_stop = trainer.strategy.broadcast(trainer.should_stop)\n",
            "rank 0 broadcasts the flag that ends the loop": _BREAK.replace("ACT", "stop = True")
            + "    dist.broadcast(stop, 0)\n    if stop:\n        break\n",
            "only rank 0 runs the loop": _BREAK.replace("    if rank == 0 and", "    if")
            .replace("for epoch", "if rank == 0:\n  for epoch")
            .replace("ACT", "break"),
            "a flag of rank 0 that does not end the loop": _BREAK.replace("ACT", "stop = True"),
            "a loop without a training step": _BREAK.replace("    loss.backward()\n", "").replace(
                "ACT", "break"
            ),
            "the ranks reduce the value that decides": _STOP_LOOP.replace(
                "    if", "    dist.all_reduce(stop.value)\n    if"
            ),
            "all ranks validate on all of the validation data": _STOP_LOOP.replace(
                ", DistributedSampler(test)", ", test"
            ),
            "the loop does not end by early stopping": _STOP_LOOP.replace(
                "early_stop", "finished"
            ).replace("stop(", "note("),
        },
    ),
    "code056_skips_by_own_loss": script_rule(
        page="""A rank leaves out a step because of its own loss.

## Why it matters
Under DDP, `backward` meets the other ranks: it averages their gradients. The loss of a rank's own batch can
be NaN on one rank and finite on the others. The rank that goes on with its next batch does not enter
`backward`, and the others wait for it there, or pair with its next one.

## What to do
Decide together: `skip = torch.isnan(loss).float(); dist.all_reduce(skip)`, and leave the step out on every
rank if `skip > 0`. Or replace the loss, `torch.nan_to_num(loss)`, and go through `backward` on every rank.
""",
        check=_skips_by_own_loss,
        fires_on={
            "a loop under DDP skips the backward if the loss is NaN": (
                (_NAN_LOOP.replace("DECIDE", "")),
                "a rank whose own loss is not finite leaves out the step, and the others wait for it in the "
                "backward of line 9",
            ),
            "`training_step` of Lightning returns None if the loss is NaN": (
                (_NAN_STEP),
                "a rank whose own loss is not finite leaves out the step, and the others wait for it in "
                "their backward",
            ),
        },
        silent_on={
            "the ranks average the loss before they decide": _NAN_LOOP.replace(
                "DECIDE", "    loss = reduce_mean(loss)\n"
            ),
            "a loss that is NaN ends the program": _NAN_LOOP.replace("DECIDE", "").replace(
                "continue", "raise SystemExit(1)"
            ),
            "a model that DDP does not wrap": _NAN_LOOP.replace("DECIDE", "").replace(
                "DDP(net)", "net"
            ),
            "a loop under DDP checks the loss after the backward": _NAN_LOOP.replace(
                "DECIDE", "    loss.backward()\n"
            ).replace("    loss.backward()\n", "", 2),
            "`training_step` of Lightning returns None, and no `ddp` strategy is given": _NAN_STEP.replace(
                ", strategy='ddp'", ""
            ),
        },
    ),
    "code059_met_by_own_batch": script_rule(
        page="""A rank's own batch decides whether it meets the others.

## Why it matters
Under DDP, `backward` averages the gradients of all ranks and waits for them; so do collectives, `self.log(…,
sync_dist=True)` and the `compute` of a metric. A batch without boxes, without a valid label or with a broken
sample comes to one rank and not to the others. That rank leaves out the step; the others wait for it, or pair
with its next one.

## What to do
Go through the step on every rank, with a loss that is zero and uses all parameters; or decide together:
`dist.all_reduce(skip)`.
""",
        check=_met_by_own_batch,
        fires_on={
            "a batch without boxes is skipped": (
                _LOOP.replace("TEST", "len(boxes) == 0"),
                f"{_LEFT_OUT}the backward of line 12",
            ),
            "a batch that is None is skipped": (
                _LOOP.replace("TEST", "images is None"),
                f"{_LEFT_OUT}the backward of line 12",
            ),
            "forward and backward only if the batch's mask is not empty": (
                _INSIDE,
                "backward is entered only by ranks whose own batch has something to work on: mask.any()",
            ),
            "a batch whose preparation raises an exception is skipped": (
                _HANDLER,
                "a rank whose own batch raises an exception leaves out the step, and the others wait for it "
                "in the backward of line 13",
            ),
            "a metric is computed only if the batch has known labels": (
                _LIGHTNING.replace("CALL", "self.f1.compute()"),
                "compute is entered only by ranks whose own batch has something to work on: known.sum() > 0",
            ),
            "a reduced value is logged only if the batch has known labels": (
                _LIGHTNING.replace("CALL", "self.log('f1', 1.0, sync_dist=True)"),
                "log is entered only by ranks whose own batch has something to work on: known.sum() > 0",
            ),
        },
        silent_on={
            "the first batch is skipped on all ranks": _LOOP.replace("TEST", "i == 0"),
            "a smaller last batch is skipped, on all ranks": _LOOP.replace(
                "TEST", "len(images) < 32"
            ),
            "the ranks add up their numbers of boxes before they decide": _LOOP.replace(
                "    if TEST", "    n = sum_over_ranks(reduce(boxes))\n    if len(boxes) == 0"
            ),
            "a model that DDP does not wrap": _LOOP.replace("DDP(net)", "net").replace(
                "TEST", "len(boxes) == 0"
            ),
            "the other branch runs a backward as well": _INSIDE.replace(
                "    optimizer",
                "    else:\n        (0 * model(batch['x'])).backward()\n    optimizer",
            ),
            "a loop in `with model.join()`": _INSIDE.replace(
                "for batch", "with model.join():\n  for batch"
            ),
            "a condition without a backward in it": _INSIDE.replace(
                "loss.backward()", "print(loss)"
            ),
            "an exception that ends the program": _HANDLER.replace(
                "continue", "raise SystemExit(1)"
            ),
            "a value is logged without `sync_dist`": _LIGHTNING.replace(
                "CALL", "self.log('f1', 1.0)"
            ),
            "the handler catches StopIteration alone": _HANDLER.replace(
                "ValueError", "StopIteration"
            ),
        },
    ),
}
