"""Mistakes by which a model and the DDP that wraps it part: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule

_DDP = "torch.nn.parallel.DistributedDataParallel"
_LAYER = re.compile(r"torch\.nn\.(?:Linear|Conv\w+|Embedding\w*|BatchNorm\w+|LayerNorm|Sequential)")
_FROZEN = re.compile(r"requires_grad\s*=\s*False|requires_grad_\(False\)")
_ALIKE = re.compile(r"broadcast|all_reduce|barrier_and_load|_sync_params|set_model_state_dict")
"""Matches what may give all ranks the same weights after one of them has loaded some."""


def _wraps(script: Script) -> Iterator[tuple[ast.Call, str]]:
    """Yield the only call of DDP that a variable is assigned from, with that variable."""
    names: dict[str, list[ast.Call]] = {}
    for call in script.calls_of(_DDP):
        parent = script.parents.get(call)
        if isinstance(parent, ast.Assign):
            names.setdefault(full_name(parent.targets[0], {}), []).append(call)
    yield from ((calls[0], name) for name, calls in names.items() if name and len(calls) == 1)


def _changed_after_wrapping(facts: ScriptFacts) -> Iterator[Claim]:
    if "DistributedDataParallel" not in facts.source:
        return
    script = read_script(facts)
    for wrap, name in _wraps(script):
        for node in script.parents:
            if not isinstance(node, ast.Assign) or node.lineno <= wrap.lineno:
                continue
            if script.enclosing_function(node) is not script.enclosing_function(wrap):
                continue
            target = ast.unparse(node.targets[0])
            added = isinstance(node.value, ast.Call) and target.startswith(f"{name}.module.")
            layer = _first_call(node.value)
            if added and layer is not None and _LAYER.fullmatch(script.call_name(layer.func)):
                yield _changed(
                    script, node, wrap, f"{target} is set after DDP has wrapped the model"
                )
                return
            if target.endswith(".requires_grad") and _is_true(node.value):
                loop = next((a for a in script.ancestors(node) if isinstance(a, ast.For)), None)
                of_model = loop is not None and re.match(
                    rf"{re.escape(name)}\.(?:module\.)?(?:\w+\.)*(?:named_)?parameters\(",
                    ast.unparse(loop.iter),
                )
                frozen = _FROZEN.search("\n".join(script.lines[: wrap.lineno]))
                if of_model and frozen:
                    reason = "parameters that were frozen when DDP wrapped the model are trained"
                    yield _changed(script, node, wrap, reason)
                    return


def _first_call(node: ast.expr) -> ast.Call | None:
    """Return the call that makes an object, without what moves it."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("cuda", "to")
    ):
        node = node.func.value
    return node if isinstance(node, ast.Call) else None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _changed(script: Script, node: ast.stmt, wrap: ast.Call, reason: str) -> Claim:
    return Claim(
        summary=f"{reason}: DDP averages only what it found then, and the ranks drift apart in the rest",
        evidence=(script.evidence_for(node), script.evidence_for(wrap)),
        fix=f"{script.source_line(node)}   # before line {wrap.lineno}, or wrap the model again",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(node),
    )


def _loaded_by_some(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "load_state_dict(" not in source or _ALIKE.search(source):
        return
    script = read_script(facts)
    for wrap, name in _wraps(script):
        for call in script.method_calls("load_state_dict"):
            owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            condition = script.rank_condition(call)
            if owner not in (name, f"{name}.module") or condition is None or condition.orelse:
                continue
            if call.lineno <= wrap.lineno or script.is_after(call, condition):
                continue
            if not _is_trained_after(script, condition):
                continue
            yield Claim(
                summary=f"only some ranks load these weights into {name}, which DDP has made alike before: "
                "it averages gradients, and the models stay different",
                evidence=(script.evidence_for(call), script.evidence_for(wrap)),
                fix=f"{script.source_line(call)}   # on all ranks, or before line {wrap.lineno}",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _is_trained_after(script: Script, condition: ast.If) -> bool:
    """Return True if a loop with a backward follows."""
    for statement in script.statements_after(condition):
        for node in ast.walk(statement):
            if isinstance(node, (ast.For, ast.While)) and ".backward(" in ast.unparse(node):
                return True
    return False


def _gradients_beside(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "autograd" not in source or "DistributedDataParallel" not in source:
        return
    if "all_reduce" in source or ".backward(" in source:
        return
    script = read_script(facts)
    for _, name in _wraps(script):
        for call in script.calls_of("torch.autograd.grad"):
            inputs = call.args[1] if len(call.args) > 1 else None
            if inputs is None or f"{name}.parameters()" not in ast.unparse(inputs):
                continue
            yield Claim(
                summary="torch.autograd.grad returns each rank's own gradients: DDP averages only those that "
                "a backward accumulates",
                evidence=(script.evidence_for(call),),
                fix="loss.backward()   # and take the gradients from p.grad",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _no_sync_without_forward(facts: ScriptFacts) -> Iterator[Claim]:
    if ".no_sync()" not in facts.source or "DistributedDataParallel" not in facts.source:
        return
    script = read_script(facts)
    wrapped = {name for _, name in _wraps(script)}
    for node in list(script.parents):
        if not isinstance(node, ast.With) or len(node.items) != 1:
            continue
        context = ast.unparse(node.items[0].context_expr)
        name = context.removesuffix(".no_sync()")
        if name not in wrapped or name == context:
            continue
        calls = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call)]
        names = [ast.unparse(c.func) for c in calls]
        running = [n for n in names if not n.endswith((".backward", "scale", ".item", "print"))]
        if running or not any(n.endswith(".backward") for n in names):
            continue
        yield Claim(
            summary="no_sync has no effect here: the forward ran before it, and this backward averages the "
            "gradients after all",
            evidence=(script.evidence_for(node),),
            fix=f"with {context}:   # around the call of {name}, too",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )
        return


_HEAD = (
    "import torch\nfrom torch import nn\nimport torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\nrank = dist.get_rank()\n"
)
_LOOP = "for x in data:\n    model(x).sum().backward()\n    opt.step()\n"
_ADDED = _HEAD + "model = DDP(net)\nmodel.module.head = nn.Linear(8, 2).cuda()\n" + _LOOP
_UNFROZEN = (
    _HEAD + "for p in net.parameters():\n    p.requires_grad = False\nmodel = DDP(net)\n"
    "for p in model.module.parameters():\n    p.requires_grad = True\n" + _LOOP
)
_LOADED = (
    _HEAD
    + "model = DDP(net)\nif rank == 0:\n    model.module.load_state_dict(torch.load('c.pt'))\n"
) + _LOOP
_GRAD = (
    _HEAD + "model = DDP(net)\nfor x in data:\n"
    "    g = torch.autograd.grad(model(x).sum(), model.parameters())\n    step(g)\n"
)
_UNSYNCED = (
    _HEAD
    + "model = DDP(net)\nfor x in data:\n    loss = model(x).sum()\n    with model.no_sync():\n"
    "        loss.backward()\n"
)
_DRIFT = "DDP averages only what it found then, and the ranks drift apart in the rest"

RULES = {
    "code076_changed_after_wrapping": script_rule(
        page="""A model gets new parameters, or trains others, after DDP has wrapped it.

## Why it matters
DDP registers its hooks on the parameters that need gradients when it wraps the model. A layer that is added
later, and a layer that was frozen then and is trained later, have none: each rank trains them by its own
data. Nothing fails, and rank 0's are saved.

## What to do
Build the model first and wrap it then. After unfreezing layers, wrap the model again.
""",
        check=_changed_after_wrapping,
        fires_on={
            "a new head after the wrapping": (
                _ADDED,
                f"model.module.head is set after DDP has wrapped the model: {_DRIFT}",
            ),
            "frozen layers that are trained after the wrapping": (
                _UNFROZEN,
                "parameters that were frozen when DDP wrapped the model are trained: " + _DRIFT,
            ),
        },
        silent_on={
            "a new head before the wrapping": _ADDED.replace("model = DDP(net)\n", "").replace(
                ".cuda()\n", "\nmodel = DDP(net)\n"
            ),
            "a setting of the model, which is no layer": _ADDED.replace(
                "nn.Linear(8, 2).cuda()", "8"
            ),
            "wrapped again after unfreezing": _UNFROZEN.replace(
                _LOOP, "model = DDP(model.module)\n" + _LOOP
            ),
            "parameters that were never frozen": _UNFROZEN.replace("= False", "= True"),
        },
    ),
    "code077_loaded_by_some": script_rule(
        page="""Only some ranks load weights into a model that DDP has wrapped already.

## Why it matters
DDP gives all ranks the weights of rank 0 once, when it wraps the model. After that it averages gradients
alone: a rank that loads other weights trains another model, and all of them report a loss.

## What to do
Load on all ranks, with `map_location`; or load on rank 0 before the wrapping, which gives the weights to all.
""",
        check=_loaded_by_some,
        fires_on={
            "rank 0 resumes after the wrapping": (
                _LOADED,
                "only some ranks load these weights into model, which DDP has made alike before: it averages "
                "gradients, and the models stay different",
            )
        },
        silent_on={
            "all ranks resume": _LOADED.replace("if rank == 0:", "if args.resume:"),
            "rank 0 loads the best weights for a last test": _LOADED.replace(
                _LOOP, "test(model)\n"
            ),
            "the weights are broadcast": _LOADED.replace(
                _LOOP, "for p in model.parameters():\n    dist.broadcast(p.data, 0)\n" + _LOOP
            ),
            "before the wrapping": _LOADED.replace("model = DDP(net)\n", "").replace(
                "model.module.load", "net.load"
            ),
        },
    ),
    "code078_gradients_beside": script_rule(
        page="""The gradients of a DDP model are taken by `torch.autograd.grad`.

## Why it matters
DDP averages in hooks that run when a backward accumulates into `.grad`. `torch.autograd.grad` returns the
gradients and accumulates nothing: each rank steps by its own batch, and the models part.

## What to do
Call `loss.backward()` and read `p.grad`, or reduce the gradients yourself.
""",
        check=_gradients_beside,
        fires_on={
            "steps by autograd.grad": (
                _GRAD,
                "torch.autograd.grad returns each rank's own gradients: DDP averages only those that a "
                "backward accumulates",
            )
        },
        silent_on={
            "a penalty on the gradient of the input": _GRAD.replace("model.parameters()", "x"),
            "the gradients are reduced by the script": _GRAD.replace(
                "step(g)", "[dist.all_reduce(q) for q in g]"
            ),
            "a backward follows": _GRAD.replace("step(g)", "penalty(g).backward()"),
        },
    ),
    "code079_no_sync_without_forward": script_rule(
        page="""`no_sync` surrounds the backward of a DDP model, and not its forward.

## Why it matters
DDP decides in the forward whether the next backward averages the gradients. A `no_sync` around the backward
alone changes nothing: every step of a gradient accumulation pays for the communication.

## What to do
Put the forward into the same `with model.no_sync():`.
""",
        check=_no_sync_without_forward,
        fires_on={
            "the forward is above no_sync": (
                _UNSYNCED,
                "no_sync has no effect here: the forward ran before it, and this backward averages the "
                "gradients after all",
            )
        },
        silent_on={
            "forward and backward in no_sync": _UNSYNCED.replace(
                "loss.backward()", "model(x).sum().backward()"
            ),
            "a function in no_sync, which may run the model": _UNSYNCED.replace(
                "loss.backward()", "step(x).backward()"
            ),
        },
    ),
}
