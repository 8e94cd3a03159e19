"""Mistakes that the frameworks' own pages warn of, and that no error tells: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule

_FSDP = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
)
_FULLY_SHARD = "torch.distributed.fsdp.fully_shard"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_CLIP = "torch.nn.utils.clip_grad_norm_"
_CONVERT = "torch.nn.SyncBatchNorm.convert_sync_batchnorm"
_OPTIMIZER = re.compile(r"torch\.optim\.[A-Z]\w*")
_SEVERAL_DEVICES = re.compile(
    r"(?:strategy|accelerator)\s*=\s*['\"](?:ddp|fsdp|deepspeed)|devices\s*=\s*(?:[2-9]|[1-9]\d|-1)"
    r"|num_nodes\s*=\s*(?:[2-9]|[1-9]\d)"
)
"""Matches the arguments by which Lightning's trainer starts several processes."""
_AVERAGES = re.compile(r"Distributed\w*Optimizer|allreduce|DistributedGradientTape")
"""Matches what averages gradients under Horovod."""
_HOROVOD_KERAS = re.compile(r"horovod(?:\.tensorflow)?\.keras|horovod\.tensorflow import keras")
_SAME_START_KERAS = re.compile(
    r"broadcast|elastic|seed|load_weights|load_model|from_pretrained|restore|weights=", re.I
)
"""Match scripts of Keras under Horovod, and what may give their processes the same initial weights."""
_SAME_START = re.compile(
    r"broadcast|elastic|seed|load_state_dict|from_pretrained|torch\.load|restore"
)
"""Matches what may give all processes the same initial weights."""
_SEED_CALLS = re.compile(r"\w*(?:\.\w+)*manual_seed\w*")
_WRAPPED = re.compile(
    r"DistributedDataParallel|FSDP|FullySharded|fully_shard|horovod|deepspeed|accelerate"
)
"""Matches what averages gradients by itself, and begins with one model."""


def _wrapped_by(script: Script, *wrappers: str) -> Iterator[tuple[ast.Call, str]]:
    """Yield each call of a wrapper, and the variable that holds the model after it."""
    for call in script.calls_of(*wrappers):
        parent = script.parents.get(call)
        if isinstance(parent, ast.Assign):
            yield call, full_name(parent.targets[0], {})
        elif isinstance(parent, ast.Expr) and call.args:
            yield call, full_name(call.args[0], {})


def _model_of_parameters(node: ast.AST) -> str:
    """Return the variable whose `parameters()` stand in a call; "" if there are none."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr == "parameters":
            return full_name(inner.value, {})
    return ""


def _optimizer_before_shards(facts: ScriptFacts) -> Iterator[Claim]:
    if "fsdp" not in facts.source or "use_orig_params" in facts.source:
        return
    script = read_script(facts)
    optimizers = [c for n, c in script.calls if _OPTIMIZER.fullmatch(n)]
    for wrap, name in _wrapped_by(script, *_FSDP, _FULLY_SHARD):
        scope = script.enclosing_function(wrap)
        model = full_name(wrap.args[0], {}) if wrap.args else ""
        of_model = [
            c
            for c in optimizers
            if _model_of_parameters(c) in {name, model} - {""}
            and script.enclosing_function(c) is scope
        ]
        if not of_model or any(c.lineno > wrap.lineno for c in of_model):
            continue
        yield Claim(
            summary=f"this optimizer holds the parameters that {name} had before FSDP replaced them by "
            "shards: its steps do not reach the model",
            evidence=(script.evidence_for(of_model[0]), script.evidence_for(wrap)),
            fix=f"{script.source_line(of_model[0])}   # behind line {wrap.lineno}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(of_model[0]),
        )
        return


def _clipped_by_shard(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "FullyShardedDataParallel" not in source or "clip_grad_norm_" not in source:
        return
    if "NO_SHARD" in source or "fully_shard(" in source:
        return
    script = read_script(facts)
    if script.calls_of(_DDP):
        return
    names = {name for _, name in _wrapped_by(script, *_FSDP)}
    if any(n != _CLIP and n.endswith(".clip_grad_norm_") for n, _ in script.calls):
        return
    for call in script.calls_of(_CLIP):
        model = _model_of_parameters(call)
        if model not in names or any(isinstance(a, ast.If) for a in script.ancestors(call)):
            continue
        rest = ", ".join(ast.unparse(a) for a in (*call.args[1:], *call.keywords))
        yield Claim(
            summary="each rank clips by the norm of its own shards, not by that of the whole gradient: the "
            "ranks scale their parts of one model differently",
            evidence=(script.evidence_for(call),),
            fix=f"{model}.clip_grad_norm_({rest})",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _state_in_prepare_data(facts: ScriptFacts) -> Iterator[Claim]:
    if "def prepare_data(" not in facts.source or not _SEVERAL_DEVICES.search(facts.source):
        return
    script = read_script(facts)
    for function in script.functions_named("prepare_data"):
        owner = script.parents.get(function)
        if not isinstance(owner, ast.ClassDef) or "Lightning" not in "".join(
            map(ast.unparse, owner.bases)
        ):
            continue
        for assignment in [n for n in ast.walk(function) if isinstance(n, ast.Assign)]:
            name = ast.unparse(assignment.targets[0])
            use = (
                _use_elsewhere(script, owner, function, name) if name.startswith("self.") else None
            )
            if use is None:
                continue
            yield Claim(
                summary=f"{name} is set in prepare_data, which one process of a host runs: the others come "
                f"to line {use.lineno} without it",
                evidence=(script.evidence_for(assignment), script.evidence_for(use)),
                fix=f"{script.source_line(assignment)}   # in setup, which every process runs",
                certainty=Certainty.LIKELY,
                where=script.place_of(assignment),
            )
            return


def _use_elsewhere(
    script: Script, owner: ast.ClassDef, function: ast.AST, name: str
) -> ast.Attribute | None:
    """Return where another method uses an attribute that only this method sets; None if there is none."""
    uses = []
    for node in ast.walk(owner):
        if not isinstance(node, ast.Attribute) or ast.unparse(node) != name:
            continue
        method = script.enclosing_function(node)
        if method is function or method is None:
            continue
        if isinstance(node.ctx, ast.Store):
            parent = script.parents.get(node)
            value = parent.value if isinstance(parent, (ast.Assign, ast.AnnAssign)) else None
            if not isinstance(value, ast.Constant) or value.value is not None:
                return None
        else:
            uses.append(node)
    return uses[0] if uses else None


def _sync_norm_after_wrapping(facts: ScriptFacts) -> Iterator[Claim]:
    if "convert_sync_batchnorm" not in facts.source:
        return
    script = read_script(facts)
    wraps = {name: wrap for wrap, name in _wrapped_by(script, _DDP)}
    for call in script.calls_of(_CONVERT):
        name = full_name(call.args[0], {}) if call.args else ""
        wrap = wraps.get(name)
        if wrap is None or wrap.lineno >= call.lineno:
            continue
        if script.enclosing_function(wrap) is not script.enclosing_function(call):
            continue
        yield Claim(
            summary=f"{name} is converted after DDP has wrapped it: DDP still averages the layers that this "
            "replaces, and the new ones are averaged by nobody",
            evidence=(script.evidence_for(call), script.evidence_for(wrap)),
            fix=f"{script.source_line(call)}   # before line {wrap.lineno}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _horovod_alone(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if ".grad" in source and not facts.is_piece:
        yield from _averaged_by_hand(read_script(facts), source)
    if _HOROVOD_KERAS.search(source) and not facts.is_piece:
        yield from _keras_alone(read_script(facts), source)
    if (
        "horovod.torch" not in source
        or "horovod.spark" in source
        or facts.is_piece
        or ".backward(" not in source
    ):
        return
    script = read_script(facts)
    optimizers = [
        c
        for n, c in script.calls
        if _OPTIMIZER.fullmatch(n)
        and getattr(script.enclosing_function(c), "name", "") != "configure_optimizers"
    ]
    if not script.calls_of("horovod.torch.init") or not optimizers:
        return
    first = optimizers[0]
    if not _AVERAGES.search(source):
        summary = (
            "no gradient is averaged: without hvd.DistributedOptimizer each process trains alone"
        )
        fix = f"hvd.DistributedOptimizer({ast.unparse(first)}, named_parameters=model.named_parameters())"
    elif "DistributedOptimizer" in source and not _SAME_START.search(source):
        summary = (
            "each process begins with initial weights of its own, and only gradients are averaged"
        )
        fix = "hvd.broadcast_parameters(model.state_dict(), root_rank=0)   # before the training"
    else:
        return
    yield Claim(
        summary=summary,
        evidence=(script.evidence_for(first),),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(first),
    )


def _averaged_by_hand(script: Script, source: str) -> Iterator[Claim]:
    """Report gradients that the script averages by itself, of models that each rank begins alone."""
    if _WRAPPED.search(source) or "torch.distributed" not in source:
        return
    averages = [
        c
        for c in script.calls_of("torch.distributed.all_reduce")
        if c.args and _is_gradient(c.args[0])
    ]
    seeds = [c for c in script.calls_of("torch.manual_seed") if c.args]
    by_rank = [c for c in seeds if any(map(_numbers_rank(script), ast.walk(c.args[0])))]
    makers = [c for n, c in script.calls if _OPTIMIZER.fullmatch(n)]
    same_start = _SAME_START.search(_SEED_CALLS.sub("", source))
    if not averages or same_start or not makers or (seeds and not by_rank):
        return
    first = (by_rank or makers)[0]
    yield Claim(
        summary="each process begins with initial weights of its own, and only gradients are averaged",
        evidence=(script.evidence_for(first), script.evidence_for(averages[0])),
        fix="for p in model.parameters(): dist.broadcast(p.data, src=0)   # before the training",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(first),
    )


def _is_gradient(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(node))


def _numbers_rank(script: Script) -> Callable[[ast.AST], bool]:
    """Return whether a part of an expression is the rank."""
    return lambda n: isinstance(n, ast.expr) and script.ranks.rank_kind(n) == "number"


def _keras_alone(script: Script, source: str) -> Iterator[Claim]:
    """Report what a script of Keras leaves out that makes Horovod's processes one training."""
    compiled = script.method_calls("compile")
    initialised = [n for n, _ in script.calls if n.startswith("horovod.") and n.endswith(".init")]
    if not compiled or not initialised or not script.method_calls("fit", "fit_generator"):
        return
    if not _AVERAGES.search(source):
        summary = (
            "no gradient is averaged: without hvd.DistributedOptimizer each process trains alone"
        )
        fix = "model.compile(optimizer=hvd.DistributedOptimizer(optimizer), …)"
    elif not _SAME_START_KERAS.search(source):
        summary = (
            "each process begins with initial weights of its own, and only gradients are averaged"
        )
        fix = (
            "hvd.callbacks.BroadcastGlobalVariablesCallback(0),   # first in the list of callbacks"
        )
    else:
        return
    yield Claim(
        summary=summary,
        evidence=(script.evidence_for(compiled[0]),),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(compiled[0]),
    )


_STEP = "for x in data:\n    model(x).sum().backward()\n    optimizer.step()\n"
_SHARDED = (
    "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    "optimizer = torch.optim.Adam(model.parameters())\nmodel = FSDP(model)\n" + _STEP
)
_SHARDED_FIRST = (
    "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    "model = FSDP(model)\noptimizer = torch.optim.Adam(model.parameters())\n"
)
_CLIPPED = (
    _SHARDED_FIRST
    + "for x in data:\n    model(x).sum().backward()\n"
    + "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n"
)
_DATA = (
    "import lightning as L\nclass Data(L.LightningDataModule):\n    def prepare_data(self):\n"
    "        self.train = download()\n    def train_dataloader(self):\n        return load(self.train)\n"
    "L.Trainer(devices=4).fit(net, Data())\n"
)
_NORM = (
    "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    "model = DDP(net)\nmodel = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)\n"
)
_HOROVOD = (
    "import torch\nimport horovod.torch as hvd\nhvd.init()\n"
    "optimizer = WRAP(torch.optim.SGD(model.parameters(), lr=0.1))\n" + _STEP
)
_KERAS = (
    "import horovod.tensorflow.keras as hvd\nhvd.init()\nmodel = build()\n"
    "model.compile(loss='mse', optimizer='sgd')\nmodel.fit(x, callbacks=CALLS)\n"
)
_BY_HAND = (
    "import torch\nimport torch.distributed as dist\nrank = dist.get_rank()\n"
    "torch.manual_seed(7 + rank)\nm = torch.nn.Linear(9, 1)\n"
    "opt = torch.optim.SGD(m.parameters(), lr=0.1)\nloss(m).backward()\n"
    "for p in m.parameters():\n    dist.all_reduce(p.grad)\n    p.grad /= dist.get_world_size()\n"
)

RULES = {
    "code067_optimizer_before_shards": script_rule(
        page="""An optimizer is made before FSDP shards the model.

## Why it matters
FSDP replaces the parameters of a model by shards. An optimizer that was made before holds the old ones: the
loss does not fall, and no error says why. PyTorch's page of FSDP asks for the optimizer after the wrapping.

## What to do
Make the optimizer after `FSDP(model)` or `fully_shard(model)`.
""",
        check=_optimizer_before_shards,
        fires_on={
            "the optimizer is created before FSDP wraps the model": (
                _SHARDED,
                "this optimizer holds the parameters that model had before FSDP replaced them by shards: its "
                "steps do not reach the model",
            ),
            "the optimizer is created before `fully_shard`": (
                _SHARDED.replace("FullyShardedDataParallel as FSDP", "fully_shard").replace(
                    "model = FSDP(model)", "fully_shard(model)"
                ),
                "this optimizer holds the parameters that model had before FSDP replaced them by shards: its "
                "steps do not reach the model",
            ),
        },
        silent_on={
            "the optimizer is created after FSDP has wrapped the model": _SHARDED_FIRST + _STEP,
            "the optimizer is created again after the wrapping": _SHARDED.replace(
                "FSDP(model)\n", "FSDP(model)\noptimizer = torch.optim.Adam(model.parameters())\n"
            ),
            "FSDP with `use_orig_params=True`": _SHARDED.replace(
                "FSDP(model)", "FSDP(model, use_orig_params=True)"
            ),
            "the optimizer of another model": _SHARDED.replace("Adam(model.", "Adam(head."),
        },
    ),
    "code068_clipped_by_shard": script_rule(
        page="""The gradients of an FSDP model are clipped by each rank's own shards.

## Why it matters
`torch.nn.utils.clip_grad_norm_` sees the shards of one rank. Each rank computes another norm, and scales its
part of the gradient by another factor. FSDP's own `clip_grad_norm_` takes the norm over all ranks.

## What to do
`model.clip_grad_norm_(max_norm)`. Under `fully_shard` (FSDP2) the function of torch.nn.utils is right.
""",
        check=_clipped_by_shard,
        fires_on={
            "an FSDP model is clipped by `torch.nn.utils.clip_grad_norm_`": (
                _CLIPPED,
                "each rank clips by the norm of its own shards, not by that of the whole gradient: the ranks "
                "scale their parts of one model differently",
            )
        },
        silent_on={
            "an FSDP model is clipped by its own `clip_grad_norm_`": _CLIPPED.replace(
                "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                "model.clip_grad_norm_(1.0)",
            ),
            "FSDP with the strategy NO_SHARD": _CLIPPED.replace(
                "FSDP(model)", "FSDP(model, S.NO_SHARD)"
            ),
            "the gradients of another model are clipped": _CLIPPED.replace("_(model.", "_(head."),
            "the model is clipped only if it is not FSDP": _CLIPPED.replace(
                "    torch.nn", "    if not isinstance(model, FSDP):\n        torch.nn"
            ),
        },
    ),
    "code069_state_in_prepare_data": script_rule(
        page="""An attribute is set in `prepare_data`, which only one process of a host runs.

## Why it matters
Lightning calls `prepare_data` once on each host, for downloads. What it assigns to `self` exists in that
process alone: the others fail with an AttributeError, or go on with None, and the first waits for them.

## What to do
Download in `prepare_data`, and assign in `setup`, which every process runs.
""",
        check=_state_in_prepare_data,
        fires_on={
            "`prepare_data` sets the dataset that the loader uses": (
                _DATA,
                "self.train is set in prepare_data, which one process of a host runs: the others come to "
                "line 6 without it",
            )
        },
        silent_on={
            "`setup` sets the dataset, on every process": _DATA.replace("prepare_data", "setup"),
            "`setup` sets the dataset as well": _DATA.replace(
                "    def train_d",
                "    def setup(self):\n        self.train = load()\n    def train_d",
            ),
            "a Trainer with one device": _DATA.replace("devices=4", "devices=1"),
            "nothing else uses the attribute": _DATA.replace("load(self.train)", "load()"),
        },
    ),
    "code070_norm_after_wrapping": script_rule(
        page="""Batch normalisation is converted after DDP has wrapped the model.

## Why it matters
`convert_sync_batchnorm` replaces layers. Done after the wrapping, DDP still averages the gradients of the
old layers: those of the new ones differ from rank to rank.

## What to do
Convert first, then wrap: `DDP(SyncBatchNorm.convert_sync_batchnorm(model))`.
""",
        check=_sync_norm_after_wrapping,
        fires_on={
            "the model is converted after DDP has wrapped it": (
                _NORM,
                "model is converted after DDP has wrapped it: DDP still averages the layers that this "
                "replaces, and the new ones are averaged by nobody",
            )
        },
        silent_on={
            "the model is converted before DDP wraps it": (
                "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
                "model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)\nmodel = DDP(model)\n"
            ),
            "the model is converted and wrapped in one line": _NORM.partition("model =")[0]
            + "model = DDP(torch.nn.SyncBatchNorm.convert_sync_batchnorm(net))\n",
        },
    ),
    "code071_horovod_alone": script_rule(
        page="""Gradients are never averaged, or each process begins with its own weights.

## Why it matters
Horovod averages gradients in the optimizer that `hvd.DistributedOptimizer` makes. Without it, N processes
train N models, and one of them is saved. And if the initial weights are random, averaging gradients alone
keeps the models apart, also where a script does so by `dist.all_reduce(p.grad)`.

## What to do
Wrap the optimizer, and call `hvd.broadcast_parameters(model.state_dict(), root_rank=0)` before the training.
With PyTorch's own collectives, call `dist.broadcast(p.data, src=0)` for each parameter.
""",
        check=_horovod_alone,
        fires_on={
            "gradients are averaged by hand, and the seed depends on the rank": (
                _BY_HAND,
                "each process begins with initial weights of its own, and only gradients are averaged",
            ),
            "Keras gets a plain optimizer": (
                _KERAS,
                "no gradient is averaged: without hvd.DistributedOptimizer each process trains alone",
            ),
            "Keras gets no broadcast callback": (
                _KERAS.replace("'sgd'", "hvd.DistributedOptimizer(opt)"),
                "each process begins with initial weights of its own, and only gradients are averaged",
            ),
            "the optimizer is not wrapped by `hvd.DistributedOptimizer`": (
                _HOROVOD.replace("WRAP", ""),
                "no gradient is averaged: without hvd.DistributedOptimizer each process trains alone",
            ),
            "the initial weights are not broadcast": (
                _HOROVOD.replace("WRAP", "hvd.DistributedOptimizer"),
                "each process begins with initial weights of its own, and only gradients are averaged",
            ),
        },
        silent_on={
            "gradients are averaged by hand, and all ranks have one seed": _BY_HAND.replace(
                " + rank", ""
            ),
            "gradients are averaged by hand, and the weights are broadcast": _BY_HAND
            + "for p in m.parameters():\n    dist.broadcast(p.data, src=0)\n",
            "the optimizer is wrapped, and the initial weights are broadcast": _HOROVOD.replace(
                "WRAP", "hvd.DistributedOptimizer"
            ).replace("for x", "hvd.broadcast_parameters(model.state_dict(), root_rank=0)\nfor x"),
            "the optimizer is that of Lightning, whose strategy wraps it": _HOROVOD.replace(
                "WRAP", ""
            ).replace(
                "optimizer = (torch.optim.SGD(model.parameters(), lr=0.1))",
                "def configure_optimizers(self):\n    return torch.optim.SGD(self.parameters())",
            ),
            "Keras gets the optimizer and the callback": _KERAS.replace(
                "'sgd'", "hvd.DistributedOptimizer(opt)"
            ).replace("CALLS", "[hvd.callbacks.BroadcastGlobalVariablesCallback(0)]"),
            "Keras begins with the weights of a checkpoint": _KERAS.replace(
                "'sgd'", "hvd.DistributedOptimizer(opt)"
            ).replace("model.fit", "model.load_weights('c.h5')\nmodel.fit"),
            "the script averages the gradients itself": _HOROVOD.replace("WRAP", "").replace(
                "    optimizer", "    hvd.allreduce_(g)\n    optimizer"
            ),
            "all processes have the same seed": _HOROVOD.replace(
                "WRAP", "hvd.DistributedOptimizer"
            ).replace("hvd.init()", "hvd.init()\ntorch.manual_seed(7)"),
            "all processes load the weights of a model": _HOROVOD.replace(
                "WRAP", "hvd.DistributedOptimizer"
            ).replace("for x", "model.load_state_dict(state)\nfor x"),
        },
    ),
}
