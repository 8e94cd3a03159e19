"""Arguments of loaders and of DDP that PyTorch refuses with several ranks: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.flow.branches import exclude_each_other, may_reach
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_LOADER = "torch.utils.data.DataLoader"
_SAMPLER = "torch.utils.data.DistributedSampler"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_CHECKPOINTS = {
    "torch.utils.checkpoint.checkpoint",
    "torch.utils.checkpoint.checkpoint_sequential",
}
_NOT_REENTRANT = re.compile(
    r"static_graph|partial\([^)]{0,80}use_reentrant\s*=\s*False|_use_reentrant\s*=\s*False"
)
"""Matches a graph that DDP takes as it is in the first step, and a checkpoint of another default."""


def _shuffles_beside_sampler(facts: ScriptFacts) -> Iterator[Claim]:
    if "Sampler" not in facts.source or "DataLoader" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(_LOADER):
        shuffle = call_argument(call, "shuffle", 2)
        sampler = call_argument(call, "sampler", 3)
        if shuffle is None or sampler is None or not _is_true(resolve(script, shuffle)):
            continue
        made_sampler = _made_sampler(script, sampler)
        if made_sampler is None or not may_reach(script, made_sampler, sampler, call):
            continue
        text = ast.unparse(sampler)
        yield Claim(
            summary=f'shuffle=True beside a sampler is refused ("sampler option is mutually exclusive with '
            f'shuffle"): {text[:60]} shuffles by itself',
            evidence=(script.evidence_for(call), script.evidence_for(made_sampler)),
            fix=f"shuffle=({text} is None)" if isinstance(sampler, ast.Name) else "shuffle=False",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _made_sampler(script: Script, sampler: ast.expr) -> ast.Call | None:
    """Return where the distributed sampler is made that a loader gets; None if it gets none."""
    values: list[ast.expr | None] = [sampler]
    if isinstance(sampler, (ast.Name, ast.Attribute)):
        values += script.ranks.bound_values(sampler)
    calls = [n for v in values if v is not None for n in _branches(v)]
    return next((c for c in calls if full_name(c.func, script.names) == _SAMPLER), None)


def _branches(value: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls that a value may come from: itself, or a branch of ``a if b else c``."""
    if isinstance(value, ast.IfExp):
        yield from _branches(value.body)
        yield from _branches(value.orelse)
    elif isinstance(value, ast.Call):
        yield value


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _reentrant_checkpoint(facts: ScriptFacts) -> Iterator[Claim]:
    if "find_unused_parameters" not in facts.source or "checkpoint" not in facts.source:
        return
    if _NOT_REENTRANT.search(facts.source):
        return
    script = read_script(facts)
    for name, call in script.calls:
        if name not in _CHECKPOINTS:
            continue
        reentrant = call_argument(call, "use_reentrant")
        if any(k.arg is None for k in call.keywords) or (
            reentrant is not None and not _is_true(resolve(script, reentrant))
        ):
            continue
        for wrap in script.calls_of(_DDP):
            finds_unused = call_argument(wrap, "find_unused_parameters")
            if finds_unused is None or not _is_true(resolve(script, finds_unused)):
                continue
            if (
                exclude_each_other(script, call, wrap)
                or _is_switched_off(script, call)
                or not _is_part_of(script, call, wrap)
            ):
                continue
            yield Claim(
                summary="DDP with find_unused_parameters=True and a reentrant checkpoint mark a gradient "
                'twice: the first backward ends with "Expected to mark a variable ready only once"',
                evidence=(script.evidence_for(call), script.evidence_for(wrap)),
                fix=f"{ast.unparse(call.func)}(…, use_reentrant=False)",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _is_switched_off(script: Script, call: ast.Call) -> bool:
    """Return True if the call is under an option that the script sets to False."""
    tests = [a.test for a in script.ancestors(call) if isinstance(a, (ast.If, ast.IfExp))]
    options = {
        n.attr if isinstance(n, ast.Attribute) else n.id
        for t in tests
        for n in ast.walk(t)
        if isinstance(n, (ast.Attribute, ast.Name))
    }
    return any(k.arg in options and _is_false(k.value) for _, c in script.calls for k in c.keywords)


def _is_part_of(script: Script, call: ast.Call, wrap: ast.Call) -> bool:
    """Return False if the model in the wrap is of a class that does not use the class of the call."""
    model = resolve(script, wrap.args[0]) if wrap.args else None
    classes = {n.name: n for n in script.parents if isinstance(n, ast.ClassDef)}
    owner = next((a for a in script.ancestors(call) if isinstance(a, ast.ClassDef)), None)
    name = ast.unparse(model.func) if isinstance(model, ast.Call) else ""
    if owner is None or name not in classes:
        return True
    pending, known = [name], {name}
    while pending:
        for node in ast.walk(classes[pending.pop()]):
            if isinstance(node, ast.Name) and node.id in classes and node.id not in known:
                known.add(node.id)
                pending.append(node.id)
    in_call = {n.id for a in ast.walk(model) if isinstance((n := a), ast.Name)} if model else set()
    return bool({owner.name} & (known | in_call))


_LOADED = (
    "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
    "if distributed:\n    sampler = DistributedSampler(data)\nelse:\n    sampler = None\n"
    "loader = DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)\n"
)
_CHECKPOINTED = (
    "from torch.nn.parallel import DistributedDataParallel\n"
    "from torch.utils.checkpoint import checkpoint\n"
    "class Net(Module):\n    def forward(self, x):\n        return checkpoint(self.block, x)\n"
    "model = DistributedDataParallel(Net(), find_unused_parameters=True)\n"
)

RULES = {
    "code088_shuffles_beside_sampler": script_rule(
        page="""A DataLoader that gets a distributed sampler is to shuffle as well.

## Why it matters
A sampler decides the order, so PyTorch refuses `shuffle=True` beside one: "sampler option is mutually
exclusive with shuffle". In a script that makes the sampler for several GPUs only, that shows on the first
machine with two.

## What to do
`shuffle=(sampler is None)`. A DistributedSampler shuffles by itself; call its `set_epoch` in each epoch.
""",
        check=_shuffles_beside_sampler,
        fires_on={
            "the sampler is made for a distributed run alone, and `shuffle=True` always": (
                _LOADED,
                'shuffle=True beside a sampler is refused ("sampler option is mutually exclusive with '
                'shuffle"): sampler shuffles by itself',
            ),
            "the sampler is made in the call": (
                "from torch.utils.data import DataLoader, DistributedSampler\n"
                "loader = DataLoader(data, 8, True, DistributedSampler(data))\n",
                'shuffle=True beside a sampler is refused ("sampler option is mutually exclusive with '
                'shuffle"): DistributedSampler(data) shuffles by itself',
            ),
        },
        silent_on={
            "it shuffles where there is no sampler": _LOADED.replace(
                "shuffle=True", "shuffle=(sampler is None)"
            ),
            "the DistributedSampler shuffles, the loader does not": _LOADED.replace(
                "shuffle=True", "shuffle=False"
            ).replace("Sampler(data)", "Sampler(data, shuffle=True)"),
            "a loader without a sampler shuffles": _LOADED.replace(", sampler=sampler", ""),
            "a loader for each branch": _LOADED.replace(
                "loader =", "if not distributed:\n    loader ="
            ),
            "the branch with a sampler returns": _LOADED.partition("if ")[0]
            + "def make(data):\n    if distributed:\n        sampler = DistributedSampler(data)\n"
            "        return DataLoader(data, sampler=sampler)\n    sampler = None\n"
            "    return DataLoader(data, shuffle=True, sampler=sampler)\n",
            "the variable has another value by then": _LOADED.replace(
                "loader =", "train = DataLoader(data, sampler=sampler)\nsampler = None\nloader ="
            ),
            "a loader where there is no sampler": _LOADED.replace(
                "loader =", "if sampler is None:\n    loader ="
            ),
        },
    ),
    "code089_reentrant_checkpoint": script_rule(
        page="""DDP looks for unused parameters in a model with reentrant checkpoints.

## Why it matters
A reentrant checkpoint runs a backward of its own inside the backward. DDP has then already marked the
parameters of that part as unused, and marks them once more: "Expected to mark a variable ready only once".

## What to do
`checkpoint(…, use_reentrant=False)`, which PyTorch recommends; or DDP without
`find_unused_parameters=True`.
""",
        check=_reentrant_checkpoint,
        fires_on={
            "`checkpoint` by its default, in a model that DDP searches": (
                _CHECKPOINTED,
                "DDP with find_unused_parameters=True and a reentrant checkpoint mark a gradient twice: "
                'the first backward ends with "Expected to mark a variable ready only once"',
            ),
            "a checkpoint with `use_reentrant=True`": (
                _CHECKPOINTED.replace("block, x", "block, x, use_reentrant=True"),
                "DDP with find_unused_parameters=True and a reentrant checkpoint mark a gradient twice: "
                'the first backward ends with "Expected to mark a variable ready only once"',
            ),
        },
        silent_on={
            "a checkpoint with `use_reentrant=False`": _CHECKPOINTED.replace(
                "block, x", "block, x, use_reentrant=False"
            ),
            "DDP does not look for unused parameters": _CHECKPOINTED.replace(
                ", find_unused_parameters=True", ""
            ),
            "the graph is static": _CHECKPOINTED.replace("=True)", "=True, static_graph=True)"),
            "an own default": _CHECKPOINTED.replace(
                "class", "checkpoint = partial(checkpoint, use_reentrant=False)\nclass"
            ),
            "another model has the checkpoint": _CHECKPOINTED.replace(
                "model =", "class Student(Module):\n    pass\nmodel ="
            ).replace("Parallel(Net()", "Parallel(Student()"),
            "DDP searches where there is no checkpoint": _CHECKPOINTED.replace(
                "        return", "        if a.saves_memory:\n            return"
            ).replace("model =", "if a.saves_memory:\n    pass\nelse:\n    model ="),
            "the option is off": _CHECKPOINTED.replace(
                "        return", "        if self.saves_memory:\n            return"
            ).replace("Net()", "Net(saves_memory=False)"),
            "a checkpoint that is saved": _CHECKPOINTED.replace("torch.utils.checkpoint", "mine"),
        },
    ),
}
