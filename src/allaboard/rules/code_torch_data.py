"""Mistakes in the data and the state that PyTorch's ranks load: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.collective_calls import FRAMEWORK_WORDS
from allaboard.formats.python.evaluation import resolve
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_SAMPLER = "torch.utils.data.DistributedSampler"
_OWN_SEED = re.compile(r"\btime\.\w*time\w*\(|random\.\w+\(|os\.urandom|getpid")
"""Matches what each process computes for itself."""
_SEEDED = re.compile(
    r"random\.seed\(|seed_everything|set_seed|setup_seed|seed_all|fix_seed|manual_seed"
)
_STOP = re.compile(r"early_?stop|should_stop|stop_training|patience", re.I)
_ALONE = (
    "each rank decides by its own share of the data when to stop: the first that leaves the loop lets the "
    "others wait in their next step"
)
_AGREED = re.compile(r"check_trigger|gather|isnan|isfinite")
"""Matches what may make the decision one of all ranks, or one that another rule judges."""
_MEETS = re.compile(
    r"all_reduce|all_gather|broadcast|\.reduce\(|\.gather\(|reduce_dict|reduce_tensor|synchroni[sz]e_"
)


def _other_orders(facts: ScriptFacts) -> Iterator[Claim]:
    if "DistributedSampler" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(_SAMPLER):
        seed = call_argument(call, "seed", 4)
        if seed is not None and _differs(script, seed):
            yield _order_claim(script, call, seed, "its seed differs between ranks")
        if seed is not None or not call.args or _SEEDED.search(facts.source):
            continue
        data = full_name(call.args[0], {})
        split = _split_at_random(script, data, call)
        if split is not None:
            yield _order_claim(script, split, call, "each rank splits the data at random by itself")
        for shuffle in script.calls_of("random.shuffle", "numpy.random.shuffle"):
            if (
                data
                and shuffle.args
                and full_name(shuffle.args[0], {}) == data
                and (
                    shuffle.lineno < call.lineno
                    and script.enclosing_function(shuffle) is script.enclosing_function(call)
                    and script.rank_condition(shuffle) is None
                )
            ):
                yield _order_claim(script, shuffle, call, "each rank shuffles the data by itself")


def _split_at_random(script: Script, data: str, sampler: ast.Call) -> ast.Call | None:
    """Return the `random_split` without a generator of which the sampler gets a part."""
    for split in script.calls_of("torch.utils.data.random_split"):
        parent = script.parents.get(split)
        targets = parent.targets[0] if isinstance(parent, ast.Assign) else None
        parts = targets.elts if isinstance(targets, (ast.Tuple, ast.List)) else []
        is_part = data in [full_name(p, {}) for p in parts]
        home = script.enclosing_function(split)
        is_own = call_argument(split, "generator", 2) is None
        if is_part and is_own and home is script.enclosing_function(sampler):
            return split
    return None


def _differs(script: Script, seed: ast.expr) -> bool:
    value = resolve(script, seed)
    names = [n for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
    by_rank = any(script.ranks.rank_kind(n) == "number" for n in names)
    return by_rank or bool(_OWN_SEED.search(ast.unparse(value)))


def _order_claim(script: Script, node: ast.AST, other_node: ast.AST, reason: str) -> Claim:
    return Claim(
        summary=f"{reason}, and the DistributedSampler splits an order that all ranks must share: they train "
        "on some samples twice and on others never",
        evidence=(script.evidence_for(node), script.evidence_for(other_node)),
        fix="DistributedSampler(dataset, seed=SEED)   # the same on all ranks; set_epoch changes the order",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(node),
    )


def _loaded_onto_one(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "torch.load(" not in source or "map_location" in source or "nccl" not in source:
        return
    script = read_script(facts)
    if not script.calls_of("torch.distributed.init_process_group") or ".cpu()" in source:
        return
    if not script.calls_of("torch.save") or not script.method_calls("load_state_dict"):
        return
    for call in script.calls_of("torch.load"):
        parent = script.parents.get(call)
        name = full_name(parent.targets[0], {}) if isinstance(parent, ast.Assign) else ""
        if len(call.args) > 1 or script.rank_condition(call) is not None:
            continue
        loads = script.method_calls("load_state_dict")
        if not any(
            c.args and (call in ast.walk(c.args[0]) or _mentions(c.args[0], name)) for c in loads
        ):
            continue
        path = ast.unparse(call.args[0]) if call.args else "path"
        yield Claim(
            summary="each rank loads the checkpoint onto the GPU that it was saved from: all of them take "
            "memory of that one GPU",
            evidence=(script.evidence_for(call),),
            fix=f'torch.load({path}, map_location="cpu")',
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _mentions(node: ast.expr, name: str) -> bool:
    return bool(name) and any(
        full_name(n, {}) == name for n in ast.walk(node) if isinstance(n, ast.expr)
    )


def _stops_alone(facts: ScriptFacts) -> Iterator[Claim]:
    yield from _stopped_by_one(facts)
    yield from _left_by_own_loss(facts)
    source = facts.source
    if "DistributedDataParallel" not in source or not _STOP.search(source) or _MEETS.search(source):
        return
    script = read_script(facts)
    # If all ranks validate on all of the data, they come to one decision.
    if len(script.calls_of(_SAMPLER)) < 2 or script.uses_launching_library:
        return
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Break):
            continue
        condition = script.parents.get(node)
        if not isinstance(condition, ast.If) or not _STOP.search(ast.unparse(condition.test)):
            continue
        loop = next(
            (a for a in script.ancestors(node) if isinstance(a, (ast.For, ast.While))), None
        )
        if loop is None or ".backward(" not in ast.unparse(loop):
            continue
        yield _lone_decision(script, condition, loop)
        return


def _left_by_own_loss(facts: ScriptFacts) -> Iterator[Claim]:
    """Report a `break` out of the loop of the steps by the loss of the rank's own batch."""
    source = facts.source
    if ".item()" not in source or _MEETS.search(source) or _AGREED.search(source):
        return
    script = read_script(facts)
    prepared = script.calls_of("accelerate.Accelerator().prepare")
    if not prepared and not script.calls_of("torch.nn.parallel.DistributedDataParallel"):
        return
    for node in [n for n in script.parents if isinstance(n, ast.Break)]:
        condition = script.parents.get(node)
        loop = script.parents.get(condition) if isinstance(condition, ast.If) else None
        if not isinstance(condition, ast.If) or not isinstance(loop, ast.For):
            continue
        if condition not in loop.body or script.rank_condition(node) is not None:
            continue
        steps = [s for s in loop.body if ".backward(" in ast.unparse(s)]
        if steps and not isinstance(steps[0], ast.For) and _asks_own_loss(condition.test):
            yield _lone_decision(script, condition, loop)
            return


def _lone_decision(script: Script, condition: ast.If, loop: ast.stmt) -> Claim:
    """Return that a rank leaves the loop by a condition of its own."""
    return Claim(
        summary=_ALONE,
        evidence=(script.evidence_for(condition), script.evidence_for(loop)),
        fix="dist.all_reduce(loss, op=dist.ReduceOp.AVG)   # before the decision, on all ranks",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(condition),
    )


def _asks_own_loss(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "item"
        and "loss" in ast.unparse(n.func.value).lower()
        for n in ast.walk(test)
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
_RESUME = (
    _HEAD
    + "c = torch.load('m.pt')\nmodel.load_state_dict(c['model'])\ntorch.save(model, f'm{rank}.pt')\n"
)
_OWN_LOSS = (
    _HEAD + "model = DistributedDataParallel(net)\nfor x in data:\n    loss = model(x).sum()\n"
    "    loss.backward()\n    if loss.item() < 0.1:\n        break\n"
)
_LOOP = (
    _HEAD + "a, b = DistributedSampler(train), DistributedSampler(test)\nfor epoch in range(9):\n"
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
_ORDER = (
    ", and the DistributedSampler splits an order that all ranks must share: they train on some samples "
    "twice and on others never"
)
_SPLIT = (
    "from torch.utils.data import random_split\ntrain, val = random_split(data, [9, 1])\n"
    "s = DistributedSampler(train)\n"
)

RULES = {
    "code051_other_orders": script_rule(
        page="""The ranks of a DistributedSampler put the data into different orders.

## Why it matters
The sampler shuffles on each rank and takes every Nth sample: the shares are distinct only if all ranks
shuffle in the same way. If a rank has a seed of its own, or has shuffled the list by itself before, its share
overlaps with those of other ranks, and some samples are never used.

## What to do
Give all ranks one seed, and let `set_epoch` change the order.
""",
        check=_other_orders,
        fires_on={
            "the sampler's seed depends on the rank": (
                _HEAD + "s = DistributedSampler(data, seed=7 + rank)\n",
                "its seed differs between ranks" + _ORDER,
            ),
            "each rank shuffles the data before it makes the sampler": (
                _HEAD + "random.shuffle(data)\ns = DistributedSampler(data)\n",
                "each rank shuffles the data by itself" + _ORDER,
            ),
            "each rank splits the data at random before it makes the sampler": (
                _HEAD + _SPLIT,
                "each rank splits the data at random by itself" + _ORDER,
            ),
        },
        silent_on={
            "the sampler has one seed on all ranks": _HEAD
            + "s = DistributedSampler(data, seed=args.seed)\n",
            "each rank shuffles the data with the same seed": _HEAD
            + "random.seed(0)\nrandom.shuffle(data)\ns = DistributedSampler(data)\n",
            "each rank splits the data with the same generator": _HEAD
            + _SPLIT.replace("[9, 1]", "[9, 1], generator=torch.Generator().manual_seed(0)"),
            "each rank has set one seed before it splits the data": _HEAD
            + "torch.manual_seed(0)\n"
            + _SPLIT,
            "the sampler gets other data than the split": _HEAD
            + _SPLIT.replace("DistributedSampler(train)", "DistributedSampler(other)"),
            "each rank shuffles a list that the sampler does not use": _HEAD
            + "random.shuffle(other)\ns = DistributedSampler(data)\n",
        },
    ),
    "code052_loaded_onto_one": script_rule(
        page="""Every rank loads a checkpoint onto the GPU that it was saved from.

## Why it matters
`torch.load` puts tensors back where they were: those of rank 0's checkpoint on GPU 0. Each rank of the
host then has a context and a copy there, and GPU 0 runs out of memory, although the model fits.

## What to do
`torch.load(path, map_location="cpu")`, or the rank's own GPU.
""",
        check=_loaded_onto_one,
        fires_on={
            "every rank loads a checkpoint without `map_location`": (
                _RESUME,
                "each rank loads the checkpoint onto the GPU that it was saved from: all of them take memory "
                "of that one GPU",
            )
        },
        silent_on={
            "every rank loads a checkpoint with `map_location='cpu'`": _RESUME.replace(
                "'m.pt')", "'m.pt', map_location='cpu')"
            ),
            "a job that uses gloo instead of NCCL": _RESUME.replace("nccl", "gloo"),
            "every rank loads data, not the state of a model": _RESUME.replace(
                "load_state_dict", "train_on"
            ),
            "only rank 0 loads the checkpoint": _RESUME.replace("c = ", "if rank == 0: c = "),
        },
    ),
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
            "the loop ends when the loss of the rank's own batch is small": (_OWN_LOSS, _ALONE),
            "each rank stops early by its own share of the validation data": (
                _LOOP,
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
            "the ranks reduce the value that decides": _LOOP.replace(
                "    if", "    dist.all_reduce(stop.value)\n    if"
            ),
            "all ranks validate on all of the validation data": _LOOP.replace(
                ", DistributedSampler(test)", ", test"
            ),
            "the loop does not end by early stopping": _LOOP.replace(
                "early_stop", "finished"
            ).replace("stop(", "note("),
        },
    ),
}
