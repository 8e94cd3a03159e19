"""A loss is computed from values that a collective gathered, and that brings no gradients along."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Function, Script, read_script
from allaboard.formats.python.script_rule import script_rule

_WRAPPERS = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
)
_ACCELERATOR = "accelerate.Accelerator()"
_GATHERS = ("torch.distributed.all_gather", "torch.distributed.all_gather_into_tensor")
_OBJECT_GATHERS = (f"{_ACCELERATOR}.gather", f"{_ACCELERATOR}.gather_for_metrics")
_FACTORS = ("scale", "temp", "tau", "bias")
"""Words in the names of outputs that are no features: a loss of gathered features may be scaled by them."""
_CARRIES = ("autograd.Function", "distributed.nn", "_functional_collectives", "diffdist")
"""Words of scripts that have another way to gather."""


class _Origins(NamedTuple):
    """Which outputs of the model a value was computed from."""

    with_gradient: frozenset[str] = frozenset()
    gathered: frozenset[str] = frozenset()

    def __or__(self, other: object) -> _Origins:
        if not isinstance(other, _Origins):
            return NotImplemented
        return _Origins(self.with_gradient | other.with_gradient, self.gathered | other.gathered)


class _Reader:
    """Follows a function's values, statement by statement."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.models = set(_models(script))
        self.values: dict[str, _Origins] = {}
        self.gather: ast.Call | None = None
        self.loss: ast.Call | None = None
        """The first backward of a loss of gathered values alone."""

    def read(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            for call in _own_calls(statement):
                self._read_call(call)
            if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                self._bind(statement)
            for field in ("body", "orelse", "finalbody"):
                self.read(getattr(statement, field, None) or [])

    def _read_call(self, call: ast.Call) -> None:
        name = self.script.call_name(call.func)
        if name in _GATHERS and len(call.args) > 1:
            self.gather = call
            self.values[ast.unparse(call.args[0])] = _Origins(
                gathered=self.origins(call.args[1]).with_gradient
            )
        is_backward = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
        if not is_backward or self.loss is not None or not isinstance(call.func, ast.Attribute):
            return
        of_loss = self.origins(call.args[0] if call.args else call.func.value)
        features = [o for o in of_loss.with_gradient if not any(w in o for w in _FACTORS)]
        if of_loss.gathered and not features:
            self.loss = call

    def _bind(self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if statement.value is None:
            return
        origins = self.origins(statement.value)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            listed = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for element in listed:
                own_origins = origins
                if isinstance(statement.value, ast.Call) and self._is_model(statement.value):
                    own_origins = _Origins(frozenset({ast.unparse(element)}))
                holder = element.value if isinstance(element, ast.Subscript) else element
                if holder is not element or isinstance(statement, ast.AugAssign):
                    own_origins = own_origins | self.origins(
                        holder
                    )  # feats[rank] = feat: its own with gradient
                self.values[ast.unparse(holder)] = own_origins

    def _is_model(self, call: ast.Call) -> bool:
        return full_name(call.func, {}) in self.models

    def origins(self, node: ast.expr) -> _Origins:
        """Return what an expression is computed from."""
        if isinstance(node, ast.Call):
            if self._is_model(node):
                return _Origins(frozenset({ast.unparse(node)}))
            gathered = self._gathered_argument(node)
            if gathered is not None:
                return _Origins(gathered=self.origins(gathered).with_gradient)
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if text in self.values:
            return self.values[text]
        origins = _Origins()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.keyword)):
                inner = child.value if isinstance(child, ast.keyword) else child
                origins = origins | self.origins(inner)
        return origins

    def _gathered_argument(self, call: ast.Call) -> ast.expr | None:
        """Return what a call gathers without gradients; None if it is another call."""
        if not call.args:
            return None
        if self.script.call_name(call.func) in _OBJECT_GATHERS:
            if self.origins(call.args[0]).with_gradient:
                self.gather = call
            return call.args[0]
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        functions = self.script.functions_named(name)
        gather = _plain_gather(self.script, functions[0]) if len(functions) == 1 else None
        if gather is None:
            return None
        self.gather = gather
        return call.args[0]


def _models(script: Script) -> Iterator[str]:
    """Yield the variables that hold a model that several ranks train."""
    for call in script.calls_of(*_WRAPPERS, f"{_ACCELERATOR}.prepare"):
        parent = script.parents.get(call)
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        for target in targets:
            listed = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            yield from (full_name(element, {}) for element in listed)


def _plain_gather(script: Script, function: Function) -> ast.Call | None:
    """Return the collective of a function that gathers its argument and puts nothing of its own back."""
    text = ast.unparse(function)
    arguments = [a.arg for a in function.args.args]
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or script.call_name(node.func) not in _GATHERS:
            continue
        own_origins = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
        holder = ast.unparse(node.args[0])
        puts_back = f"{holder}[" in text or f"{holder}.insert" in text
        if arguments and own_origins.partition(".")[0] == arguments[0] and not puts_back:
            return node
    return None


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a statement, without those of the statements inside of it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from (n for n in ast.walk(child) if isinstance(n, ast.Call))


def _without_gradient(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "gather" not in source or "backward" not in source or any(w in source for w in _CARRIES):
        return
    script = read_script(facts)
    blocks = [script.tree.body, *(f.body for f in script.parents if isinstance(f, ast.FunctionDef))]
    for block in blocks:
        reader = _Reader(script)
        reader.read(block)
        loss, gather = reader.loss, reader.gather
        if loss is None or gather is None:
            continue
        if script.call_name(gather.func) in _OBJECT_GATHERS:
            own_origins = ast.unparse(gather.args[0])
            fix = f"{own_origins}   # in the loss, in place of the gathered; DDP averages the gradients"
        else:
            holder, own_origins = map(ast.unparse, gather.args[:2])
            fix = (
                f"{holder}[torch.distributed.get_rank()] = {own_origins}   # behind the all_gather"
            )
        yield Claim(
            summary="a gather brings values without their gradients, and this loss is made of them alone: "
            "its backward reaches no layer of the model",
            evidence=(script.evidence_for(gather), script.evidence_for(loss)),
            fix=fix,
            certainty=Certainty.LIKELY,
            where=script.place_of(gather),
        )
        return


_GATHERED = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
def gather(x):
    every = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(every, x)
    return torch.cat(every)
model = DistributedDataParallel(net)
for image, text in loader:
    a, b = model(image, text)
    a, b = gather(a), gather(b)
    loss = contrast(a @ b.t())
    loss.backward()
"""
_ALONE = (
    "a gather brings values without their gradients, and this loss is made of them alone: its backward "
    "reaches no layer of the model"
)
_PREPARED = """from accelerate import Accelerator
accelerator = Accelerator()
model, loader = accelerator.prepare(model, loader)
for x, y in loader:
    out = model(x)
    loss = criterion(accelerator.gather(out), accelerator.gather(y))
    accelerator.backward(loss)
"""

RULES = {
    "code107_gathered_loss": script_rule(
        page="""A loss is made of gathered values alone.

## Why it matters
`all_gather` of torch.distributed and `gather` of accelerate copy numbers; autograd does not follow them to
the other ranks, nor back to the own one. A loss of such values alone has no gradient, or only that of its
temperature: the model does not learn.

## What to do
Put the rank's own tensor back at its place in the list, or use
`torch.distributed.nn.functional.all_gather`. A loss that is a mean over samples needs no gather: DDP
averages the gradients.
""",
        check=_without_gradient,
        fires_on={
            "the features of all ranks in a contrastive loss": (_GATHERED, _ALONE),
            "accelerate gathers the outputs before the loss": (_PREPARED, _ALONE),
        },
        silent_on={
            "the own features are put back": _GATHERED.replace(
                "x)\n    return", "x)\n    every[dist.get_rank()] = x\n    return"
            ),
            "own features meet those of all ranks": _GATHERED.replace(
                "contrast(a @", "contrast(c @"
            ).replace("a, b = gather(a), gather(b)", "c, b = a, gather(b)"),
            "metrics are gathered, the loss is the rank's own": _PREPARED.replace(
                "criterion(accelerator.gather(out), accelerator.gather(y))",
                "criterion(out, y); metric.add(accelerator.gather(out))",
            ),
            "a gather that carries gradients": _GATHERED.replace(
                "    every = [torch",
                "    return torch.distributed.nn.functional.all_gather(x)\n    every = [torch",
            ),
        },
    ),
}
