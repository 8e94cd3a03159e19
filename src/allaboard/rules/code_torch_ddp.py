"""Mistakes in what DistributedDataParallel is given and how it is used: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule

_DDP = "torch.nn.parallel.DistributedDataParallel"
_LAYER = re.compile(
    r"torch\.nn\.(?:Linear|Bilinear|Conv\w+|BatchNorm\w+|LayerNorm|GroupNorm|Embedding\w*|LSTM|GRU|RNN|PReLU"
    r"|MultiheadAttention|TransformerEncoderLayer|TransformerDecoderLayer)"
)
"""Layers of torch.nn that have parameters."""
_TOLERANT = ("find_unused_parameters", "static_graph", None)
"""Keywords by which DDP may be told of unused parameters; None for what is unpacked."""
_ALL_LAYERS = re.compile(
    r"\b(?:getattr|vars|eval)\(|__dict__|\.(?:named_)?(?:children|modules)\(\)"
)
_HARMLESS_CALLS = ("isinstance", "print", "hasattr", "type", "id")
"""Calls that do not run a model that they get."""
_BY_HAND = ("all_reduce", "no_sync", "_sync_params", "require_backward_grad_sync")
"""Words of a script that may average its gradients itself."""


def _wrapped(script: Script) -> Iterator[tuple[ast.Call, str, ast.expr]]:
    """Yield each call of DDP with the variable that it is assigned to and its model."""
    for call in script.calls_of(_DDP):
        parent = script.parents.get(call)
        if isinstance(parent, ast.Assign) and call.args:
            yield call, full_name(parent.targets[0], {}), call.args[0]


def _unused_parameters(facts: ScriptFacts) -> Iterator[Claim]:
    if "DistributedDataParallel" not in facts.source or "requires_grad" in facts.source:
        return
    script = read_script(facts)
    if not script.method_calls("backward") or _ALL_LAYERS.search(facts.source):
        return
    for call, _, model in _wrapped(script):
        construction = _without_moves(script, model)
        layer = _unused_layer(script, construction)
        if layer is None or any(k.arg in _TOLERANT for k in call.keywords):
            continue
        name = ast.unparse(layer.targets[0]).removeprefix("self.")
        yield Claim(
            summary=f"{name} has parameters, and forward never uses it: DDP waits for their gradients and "
            "ends the second step with an error",
            evidence=(script.evidence_for(layer), script.evidence_for(call)),
            fix=f"remove {name}, or: {ast.unparse(call)[:-1]}, find_unused_parameters=True)",
            certainty=Certainty.LIKELY,
            where=script.place_of(layer),
        )
        return


def _without_moves(script: Script, model: ast.expr) -> ast.expr:
    """Return the expression that makes a model, without what moves or converts it."""
    for _ in range(6):
        model = resolve(script, model)
        if not (
            isinstance(model, ast.Call)
            and isinstance(model.func, ast.Attribute)
            and model.func.attr in ("to", "cuda", "cpu", "float", "half", "train")
        ):
            break
        model = model.func.value
    return model


def _unused_layer(script: Script, construction: ast.expr) -> ast.Assign | None:
    """Return the first layer of a model of the script that nothing but its assignment mentions."""
    if not isinstance(construction, ast.Call) or not isinstance(construction.func, ast.Name):
        return None
    classes = [
        n
        for n in ast.walk(script.tree)
        if isinstance(n, ast.ClassDef) and n.name == construction.func.id
    ]
    if len(classes) != 1 or [full_name(b, script.names) for b in classes[0].bases] != [
        "torch.nn.Module"
    ]:
        return None
    methods = {n.name: n for n in classes[0].body if isinstance(n, ast.FunctionDef)}
    if "forward" not in methods or "__init__" not in methods:
        return None
    for statement in methods["__init__"].body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        target = statement.targets[0]
        is_layer = _LAYER.fullmatch(full_name(statement.value.func, script.names))
        if not is_layer or not isinstance(target, ast.Attribute):
            continue
        uses = [
            n
            for n in ast.walk(script.tree)
            if isinstance(n, ast.Attribute) and n.attr == target.attr
        ]
        if len(uses) == 1:
            return statement
    return None


def _trained_beside(facts: ScriptFacts) -> Iterator[Claim]:
    if "DistributedDataParallel" not in facts.source:
        return
    if any(marker in facts.source for marker in _BY_HAND):
        return
    script = read_script(facts)
    for wrap, name, model in _wrapped(script):
        # Passed on or called, the wrapper may train after all.
        if not name or _is_run(script, name, wrap):
            continue
        inner = {f"{name}.module"} | _aliases(script, f"{name}.module")
        model_name = full_name(model, {})
        if model_name and model_name != name:
            inner.add(model_name)
        trained = _trained_call(script, inner, wrap)
        if trained is None:
            continue
        run = full_name(trained.func, {})
        yield Claim(
            summary=f"{run} is trained, and never {name}, which DDP made of it: no gradient is averaged, and "
            "each rank trains a model of its own",
            evidence=(script.evidence_for(trained), script.evidence_for(wrap)),
            fix=script.source_line(trained).replace(f"{run}(", f"{name}(", 1),
            certainty=Certainty.LIKELY,
            where=script.place_of(trained),
        )
        return


def _moved_to_the_cpu(facts: ScriptFacts) -> Iterator[Claim]:
    if "DistributedDataParallel" not in facts.source or "cpu" not in facts.source:
        return
    script = read_script(facts)
    for wrap, name, _ in _wrapped(script):
        for _, call in script.calls:
            moved = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            if moved not in (name, f"{name}.module") or not _moves_to_cpu(call):
                continue
            loops = [a for a in script.ancestors(call) if isinstance(a, (ast.For, ast.While))]
            backwards = [b for loop in loops for b in _backwards_in(loop)]
            inside = {n for loop in loops for n in ast.walk(loop)}
            if not backwards or any(w in inside for w, made, _ in _wrapped(script) if made == name):
                continue
            yield Claim(
                summary=f"{moved} is moved to the CPU between steps: the hooks of DDP stay behind, and after "
                "that each rank trains a model of its own",
                evidence=(script.evidence_for(call), script.evidence_for(wrap)),
                fix="copy.deepcopy(model.module).cpu()   # a copy; or wrap the model anew after moving it",
                severity=Severity.WARNING,
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )
            return


def _moves_to_cpu(call: ast.Call) -> bool:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    to_cpu = bool(call.args) and ast.unparse(call.args[0]) in ("'cpu'", "torch.device('cpu')")
    return method == "cpu" or (method == "to" and to_cpu)


def _backwards_in(loop: ast.AST) -> list[ast.AST]:
    return [n for n in ast.walk(loop) if isinstance(n, ast.Attribute) and n.attr == "backward"]


def _is_run(script: Script, name: str, wrap: ast.Call) -> bool:
    """Return True if the wrapper is called or passed to something that may call it."""
    for _, call in script.calls:
        if full_name(call.func, {}) == name and call.lineno > wrap.lineno:
            return True
        if call is wrap or script.call_name(call.func) in _HARMLESS_CALLS:
            continue
        passed = [*call.args, *(k.value for k in call.keywords)]
        listed = [e for p in passed if isinstance(p, (ast.Tuple, ast.List)) for e in p.elts]
        if any(full_name(n, {}) == name for n in [*passed, *listed]):
            return True
    stored = [
        n.value
        for n in ast.walk(script.tree)
        if isinstance(n, (ast.Assign, ast.Return)) and n.value is not None
    ]
    return any(full_name(v, {}) == name for v in stored)


def _aliases(script: Script, module: str) -> set[str]:
    """Return the variables that are the model inside of the wrapper."""
    names = set()
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            value = node.value.body if isinstance(node.value, ast.IfExp) else node.value
            if full_name(value, {}) == module:
                names.add(full_name(node.targets[0], {}))
    return names - {""}


def _trained_call(script: Script, inner: set[str], wrap: ast.Call) -> ast.Call | None:
    """Return the first call of the inner model, behind the wrapping, whose result goes into a backward."""
    for _, call in script.calls:
        name = full_name(call.func, {})
        if name not in inner or call.lineno <= wrap.lineno:
            continue
        home = script.enclosing_function(wrap)
        if "." not in name and home not in (None, script.enclosing_function(call)):
            continue  # another function's variable of that name
        if script.rank_condition(call) is not None or _is_without_gradients(script, call):
            continue
        if _reaches_backward(script, call):
            return call
    return None


def _is_without_gradients(script: Script, call: ast.Call) -> bool:
    return any(
        isinstance(a, ast.With)
        and any(w in ast.unparse(i.context_expr) for i in a.items for w in ("no_grad", "inference"))
        for a in script.ancestors(call)
    )


def _reaches_backward(script: Script, call: ast.Call) -> bool:
    """Return True if what the call returns flows, by assignments, into the receiver of a backward."""
    function = script.enclosing_function(call)
    body: ast.AST = function if function is not None else script.tree
    statements = sorted(
        (n for n in ast.walk(body) if isinstance(n, (ast.Assign, ast.AugAssign, ast.Expr))),
        key=lambda n: n.lineno,
    )
    tainted: set[str] = set()
    for statement in statements:
        inner_nodes = list(ast.walk(statement.value))
        flows = call in inner_nodes or any(
            isinstance(n, ast.Name) and n.id in tainted for n in inner_nodes
        )
        if not flows:
            continue
        if any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in inner_nodes):
            return True
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            tainted |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return False


_HEAD = """import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
"""
_NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
    def forward(self, x):
        return self.b(x)
"""
_STEP = "for x in data:\n    loss = MODEL(x).sum()\n    loss.backward()\n    opt.step()\n"

_MOVED = (
    "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(net)\n"
    "for x in data:\n    model(x).sum().backward()\n    model.cpu()\n"
)

RULES = {
    "code041_unused_parameters": script_rule(
        page="""DDP wraps a model with a layer that its forward never uses.

## Why it matters
DDP counts the gradients of all parameters. Those of a layer that took no part never come, so the reduction of
the first step does not finish, and the second step ends with "Expected to have finished reduction in the
prior iteration before starting a new one".

## What to do
Remove the layer. If forward uses it in some steps only, pass `find_unused_parameters=True`, which costs a
walk through the graph in every step.
""",
        check=_unused_parameters,
        fires_on={
            "a layer that `forward` never uses": (
                _HEAD + _NET + "model = DDP(Net().to(0))\n" + _STEP.replace("MODEL", "model"),
                "a has parameters, and forward never uses it: DDP waits for their gradients and ends the "
                "second step with an error",
            )
        },
        silent_on={
            "DDP with `find_unused_parameters=True`": _HEAD
            + _NET
            + "model = DDP(Net(), find_unused_parameters=True)\n"
            + _STEP.replace("MODEL", "model"),
            "`forward` uses all layers": _HEAD
            + _NET.replace("self.b(x)", "self.b(self.a(x))")
            + "model = DDP(Net())\nl.backward()\n",
            "an unused layer whose parameters are frozen": _HEAD
            + _NET
            + "net = Net()\nnet.a.requires_grad_(False)\nmodel = DDP(net)\nl.backward()\n",
            "an unused layer whose weight another layer shares": _HEAD
            + _NET.replace("        super", "        # tied\n        super")
            + "net = Net()\nnet.b.weight = net.a.weight\nmodel = DDP(net)\nl.backward()\n",
            "an unused layer without parameters": _HEAD
            + _NET.replace("self.a = nn.Linear(4, 4)", "self.a = nn.ReLU()")
            + "model = DDP(Net())\nl.backward()\n",
            "a model that DDP does not wrap": _HEAD
            + _NET
            + "model = Net()\n"
            + _STEP.replace("MODEL", "model"),
        },
    ),
    "code042_trained_beside_ddp": script_rule(
        page="""The model inside of DDP is trained, and the wrapper is never called.

## Why it matters
DDP averages the gradients of a backward only if its own forward ran before. `model.module(x)`, or the
variable that the model had before it was wrapped, goes around it: every rank trains on its own share of
the data alone, and rank 0 saves a model that saw one Nth of it. Nothing fails, and nothing is printed.

## What to do
Call the wrapper in training. `model.module(...)` is for evaluation on one rank, and for saving.
""",
        check=_trained_beside,
        fires_on={
            "the loop trains `model.module`": (
                _HEAD + "model = DDP(net)\n" + _STEP.replace("MODEL", "model.module"),
                "model.module is trained, and never model, which DDP made of it: no gradient is averaged, "
                "and each rank trains a model of its own",
            ),
            "the loop trains the model under its name before DDP": (
                _HEAD + "net = make()\nddp = DDP(net)\n" + _STEP.replace("MODEL", "net"),
                "net is trained, and never ddp, which DDP made of it: no gradient is averaged, and each rank "
                "trains a model of its own",
            ),
        },
        silent_on={
            "the loop trains the DDP model": _HEAD
            + "model = DDP(net)\n"
            + _STEP.replace("MODEL", "model"),
            "another function trains a model of the same name": _HEAD
            + "def save():\n    net = make()\n    ddp = DDP(net)\n"
            + "def fit():\n    net = make()\n    net(x).backward()\n",
            "the DDP model has taken over the name of the model": _HEAD
            + "net = make()\nnet = DDP(net)\n"
            + _STEP.replace("MODEL", "net"),
            "`model.module` is used in an evaluation": _HEAD
            + "model = DDP(net)\nwith torch.no_grad():\n    y = model.module(x)\nfit(model)\n",
            "the DDP model is passed on to a function, which may train it": _HEAD
            + "model = DDP(net)\nfit(model)\n"
            + _STEP.replace("MODEL", "model.module"),
            "the script averages the gradients itself": _HEAD
            + "model = DDP(net)\n"
            + _STEP.replace("MODEL", "model.module").replace(
                "opt.step", "all_reduce(model); opt.step"
            ),
            "the loop trains the model before DDP wraps it": _HEAD
            + _STEP.replace("MODEL", "net")
            + "model = DDP(net)\ny = model.module(x)\n",
        },
    ),
    "code064_moved_to_the_cpu": script_rule(
        page="""A model in DDP is moved to the CPU between training steps.

## Why it matters
DDP averages gradients by hooks on the parameters that it saw when it wrapped the model. `.cpu()` moves the
model in place, and replaces the tensors to which those hooks are attached: gradients are no longer averaged,
without a message, even after the model is back on the GPU. `model.module.cpu().state_dict()` for a checkpoint
has the same effect.

## What to do
Move a copy, or the tensors of `state_dict()` one by one; or wrap the model anew.
""",
        check=_moved_to_the_cpu,
        fires_on={
            "the model is moved to the CPU in every step": (
                _MOVED,
                "model is moved to the CPU between steps: the hooks of DDP stay behind, and after that each "
                "rank trains a model of its own",
            ),
            "the model is moved to the CPU for a checkpoint in every step": (
                _MOVED.replace("model.cpu()", "torch.save(model.module.cpu().state_dict(), 'm')"),
                "model.module is moved to the CPU between steps: the hooks of DDP stay behind, and after "
                "that each rank trains a model of its own",
            ),
        },
        silent_on={
            "the model is moved to the CPU after the training": _MOVED.replace(
                "    model.cpu()", "model.cpu()"
            ),
            "a copy of the model is moved to the CPU": _MOVED.replace(
                "model.cpu()", "copy.deepcopy(model).cpu()"
            ),
            "the loss is moved to the CPU": _MOVED.replace("model.cpu()", "loss.cpu()"),
            "the model is moved to the CPU, and wrapped by DDP again": _MOVED.replace(
                "model.cpu()", "model.cpu()\n    model = DDP(net)"
            ),
        },
    ),
}
