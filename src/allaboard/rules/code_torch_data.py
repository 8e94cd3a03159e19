"""Mistakes in the data and the state that PyTorch's ranks load: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_SAMPLER = "torch.utils.data.DistributedSampler"
_OWN_SEED = re.compile(r"\btime\.\w*time\w*\(|random\.\w+\(|os\.urandom|getpid")
"""Matches what each process computes for itself."""
_SEEDED = re.compile(
    r"random\.seed\(|seed_everything|set_seed|setup_seed|seed_all|fix_seed|manual_seed"
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
    if "torch.load(" not in source or "nccl" not in source:
        return
    script = read_script(facts)
    if not script.calls_of("torch.distributed.init_process_group") or ".cpu()" in source:
        return
    if not script.calls_of("torch.save") or not script.method_calls("load_state_dict"):
        return
    for call in script.calls_of("torch.load"):
        parent = script.parents.get(call)
        name = full_name(parent.targets[0], {}) if isinstance(parent, ast.Assign) else ""
        onto = call_argument(call, "map_location", 1)
        is_unstated = onto is None and "map_location" not in source
        is_onto_one = is_unstated or evaluate(script, onto) == "cuda:0"
        if not is_onto_one or script.rank_condition(call) is not None:
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
}
