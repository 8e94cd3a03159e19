"""Only some ranks run a model whose forward meets the other ranks.

## Why it matters
A model that DDP wraps broadcasts its buffers in every forward, also in evaluation: the statistics of batch
normalisation, and whatever else was registered as a buffer. A model that FSDP shards gathers its parameters.
Under `if rank == 0` the others do not take part: they wait in their next collective, often a barrier, which
then pairs with this broadcast, and the job hangs. Keras' callbacks of Horovod meet all ranks in the same way,
and so do `fit`, `evaluate` and `save` under MultiWorkerMirroredStrategy: its variables are summed up as they
are saved. A function that `jax.pmap` made runs on the devices of all processes.

## What to do
Let all ranks run it, or call the model inside of the wrapper, `model.module(...)`, where one rank runs a DDP
model alone. A model without buffers, and one wrapped with `broadcast_buffers=False`, meet nobody
in forward.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.call_graph import CallGraph, call_graph_of
from allaboard.formats.python.collective_calls import enters_collective
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.rank_conditions import differs_between_ranks, is_on_both_ways
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.wrapped_models import ModelRun, WrappedModels, find_run

_WORDS = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "horovod",
          "MultiWorkerMirroredStrategy", "deepspeed", "pmap", "make_array_from_",
          "_shardings")  # fmt: skip
"""Words without which no model of a script meets other ranks."""
_HOROVOD_CALLBACK = re.compile(
    r"horovod\.(?:\w+\.)*callbacks\.(?:MetricAverageCallback|BroadcastGlobalVariablesCallback)(?:Impl)?"
)
_GLOBAL = (
    "import jax\nimport jax.numpy as jnp\nx = jax.make_array_from_process_local_data(s, a)\n"
    "if jax.process_index() == 0:\n    print(jnp.sum(x))\n"
)
_KERAS_CALLS = ("fit", "evaluate", "predict", "save")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(marker in facts.source for marker in _WORDS):
        return
    script = read_script(facts)
    reach = call_graph_of(script)
    models = WrappedModels(script)
    for _, call in script.calls:
        condition = script.rank_condition(call)
        if condition is None or not differs_between_ranks(script, reach, condition.test):
            continue
        run = find_run(script, reach, call, models) if not _is_without_sync(script, call) else None
        if run is not None and (
            run.wrapped.meets_in_forward
            or run.trains
            or (run.wrapped.may_meet and _all_meet_after(script, condition))
        ):
            on_both_ways = is_on_both_ways(
                script, condition, lambda s: _runs_below(script, reach, s, models)
            )
            claim = _model_claim(script, call, condition, run)
        elif meeting := _keras_meeting(script, call):
            on_both_ways = is_on_both_ways(script, condition, lambda s: _keras_below(script, s))
            claim = _keras_claim(script, call, condition, meeting)
        else:
            continue
        if not on_both_ways:
            yield claim
    yield from _global_arrays(script, reach)


def _global_arrays(script: Script, reach: CallGraph) -> Iterator[Claim]:
    """Report computations on an array of all processes of JAX that only some of them run."""
    yield from _sharded_functions(script, reach)
    arrays = {
        ast.unparse(p.targets[0])
        for n, c in script.calls
        if n.startswith("jax.make_array_from_") and isinstance(p := script.parents[c], ast.Assign)
    }
    for name, call in script.calls if arrays else ():
        used = next((t for a in call.args if (t := ast.unparse(a)) in arrays), None)
        condition = script.rank_condition(call)
        if used is None or condition is None or not name.startswith(("jax.numpy.", "jax.lax.")):
            continue
        if not differs_between_ranks(script, reach, condition.test) or condition.orelse:
            continue
        yield Claim(
            summary=f"{used} is an array of all processes, and {name.rpartition('.')[2]} of it runs only "
            f"where {script.reached_where(call, condition)}",
            evidence=(script.evidence_for(call), script.evidence_for(condition)),
            fix=f"{ast.unparse(call)}   # on all processes, outside of the if of line {condition.lineno}",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _sharded_functions(script: Script, reach: CallGraph) -> Iterator[Claim]:
    """Report functions compiled for arrays in shards of all processes that only some of them call."""
    sharded = {ast.unparse(t): t for n in script.parents for t in _compiled_names(n)}
    if not sharded or not script.calls_of("jax.distributed.initialize"):
        return
    for _, call in script.calls:
        condition = script.rank_condition(call)
        if ast.unparse(call.func) not in sharded or condition is None or condition.orelse:
            continue
        if differs_between_ranks(script, reach, condition.test):
            yield Claim(
                summary=f"{ast.unparse(call.func)} is compiled for shards on the devices of all processes, "
                f"and runs only where {script.reached_where(call, condition)}",
                evidence=(script.evidence_for(call), script.evidence_for(condition)),
                fix=f"{ast.unparse(call)[:60]}   # on all processes, outside of the if of line "
                f"{condition.lineno}",
                certainty=Certainty.LIKELY,
                where=script.place_of(call),
            )


def _compiled_names(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the name of a function that jit compiles with shardings."""
    if isinstance(node, ast.FunctionDef) and any(map(_has_shardings, node.decorator_list)):
        yield ast.Name(node.name, ast.Load())
    elif isinstance(node, ast.Assign) and _has_shardings(node.value):
        yield node.targets[0]


def _has_shardings(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    names = [ast.unparse(n) for n in (node.func, *node.args)]
    is_jit = any(n.rpartition(".")[2] in ("jit", "pjit") for n in names)
    return is_jit and any(k.arg in ("in_shardings", "out_shardings") for k in node.keywords)


def _all_meet_after(script: Script, condition: ast.If) -> bool:
    """Return True if a collective of all ranks follows in the block of the branch: the others wait there."""
    above = script.parents[condition]
    blocks = [b for _, b in ast.iter_fields(above) if isinstance(b, list) and condition in b]
    following = [n for b in blocks for s in b[b.index(condition) + 1 :] for n in ast.walk(s)]
    return any(
        enters_collective(full_name(n.func, script.names), n)
        and script.rank_condition(n) is script.rank_condition(condition)
        for n in following
        if isinstance(n, ast.Call)
    )


def _is_without_sync(script: Script, call: ast.Call) -> bool:
    """Return True under ``with model.no_sync():``, where DDP meets nobody."""
    return any(
        isinstance(a, ast.With) and any("no_sync" in ast.unparse(i.context_expr) for i in a.items)
        for a in script.ancestors(call)
    )


def _runs_below(
    script: Script, reach: CallGraph, statement: ast.stmt, models: WrappedModels
) -> bool:
    return any(
        isinstance(n, ast.Call) and find_run(script, reach, n, models) is not None
        for n in ast.walk(statement)
    )


def _model_claim(script: Script, call: ast.Call, condition: ast.If, run: ModelRun) -> Claim:
    forward = (
        "gathers its shards"
        if run.wrapped.wrapper in ("FSDP", "ZeRO-3")
        else "broadcasts its buffers"
    )
    is_guess = not (run.wrapped.meets_in_forward or run.trains)
    does = (
        f"whose forward {forward}"
        if run.wrapped.meets_in_forward
        else "whose backward meets all ranks"
        if run.trains
        else "whose forward broadcasts its buffers if it has any (BatchNorm, for example)"
    )
    evidence = [script.evidence_for(call)]
    if run.inner.lineno != call.lineno:
        evidence.append(script.evidence_for(run.inner))
    if condition.lineno != call.lineno:
        evidence.append(script.evidence_for(condition))
    line = f" in line {run.inner.lineno}" if run.inner is not call else ""
    subject = (
        f"{run.model}, which pmap runs on the devices of all processes,"
        if run.wrapped.wrapper == "pmap"
        else f"the {run.wrapped.wrapper} model {run.model}, {does},"
    )
    return Claim(
        summary=f"{subject} runs{line} only where {script.reached_where(call, condition)}",
        evidence=tuple(evidence),
        fix=_corrected(script, call, run)
        if run.wrapped.wrapper == "DDP"
        else f"{script.source_line(call)}   # on all ranks, outside of the if of line {condition.lineno}",
        severity=Severity.WARNING if is_guess else Severity.ERROR,
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


def _corrected(script: Script, call: ast.Call, run: ModelRun) -> str:
    """Return the line with the model inside of the wrapper."""
    line = script.source_line(call)
    is_called = run.inner is call
    if not is_called and not re.search(rf"(?<![\w.]){re.escape(run.model)}(?!\w)", line):
        line, is_called = script.source_line(run.inner), True  # the function has it from elsewhere
    pattern = (
        rf"(?<![\w.]){re.escape(run.model)}(?=\()"
        if is_called
        else (rf"(?<![\w.]){re.escape(run.model)}(?![\w.(=])")
    )
    return re.sub(pattern, f"{run.model}.module", line) + "   # or let all ranks run it"


def _keras_below(script: Script, statement: ast.stmt) -> bool:
    return any(
        isinstance(n, ast.Call) and bool(_keras_meeting(script, n)) for n in ast.walk(statement)
    )


def _keras_meeting(script: Script, call: ast.Call) -> str:
    """Return what in this call of Keras meets all ranks; "" for none."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _KERAS_CALLS:
        return ""
    if call.func.attr == "save" and not _saves_by_all(script, call):
        return ""
    callbacks = next((k.value for k in call.keywords if k.arg == "callbacks"), None)
    if callbacks is not None:
        for listed_call in _listed_calls(script, callbacks):
            if _HOROVOD_CALLBACK.fullmatch(name := full_name(listed_call.func, script.names)):
                return name.rpartition(".")[2]
    is_multi_worker = any(
        "MultiWorkerMirroredStrategy" in ast.unparse(strategy) for strategy in script.strategies
    )
    return "MultiWorkerMirroredStrategy" if is_multi_worker and call.func.attr != "predict" else ""


def _saves_by_all(script: Script, call: ast.Call) -> bool:
    """Return True if this saves a model that the script fits, as a folder: a file of weights sums "
    "nothing up."""
    path = ast.unparse(call.args[0]) if call.args else ""
    name = full_name(call.func.value, {}) if isinstance(call.func, ast.Attribute) else ""
    if not name or re.search(r"\.(?:h5|hdf5|keras)\W*$", path):
        return False
    return any(
        isinstance(c.func, ast.Attribute) and full_name(c.func.value, {}) == name
        for c in script.method_calls("fit")
    )


def _listed_calls(script: Script, callbacks: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls in a list of callbacks, also where a variable holds it."""
    expressions = [callbacks]
    if isinstance(callbacks, ast.Name):
        expressions = [
            n.value
            for n in ast.walk(script.tree)
            if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == callbacks.id for t in n.targets)
        ]
    for expression in expressions:
        yield from (n for n in ast.walk(expression) if isinstance(n, ast.Call))


def _keras_claim(script: Script, call: ast.Call, condition: ast.If, meeting: str) -> Claim:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else "it"
    evidence = [script.evidence_for(call)]
    if condition.lineno != call.lineno:
        evidence.append(script.evidence_for(condition))
    return Claim(
        summary=f"{method} runs only where {script.reached_where(call, condition)}, and "
        f"{meeting} meets all ranks in it",
        evidence=tuple(evidence),
        fix=f"{script.source_line(call)}   # on all ranks, outside of the if of line {condition.lineno}",
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


_HEAD = (
    "import torch.distributed as dist\nfrom torch import nn\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
)
_NET = "class Net(nn.Module):\n    def __init__(self):\n        self.bn = nn.BatchNorm2d(8)\n"
_VALIDATE = "def validate(net, data):\n    for x in data:\n        net(x)\n"
_HOROVOD = "import horovod.keras as hvd\nhvd.init()\n"
_SHARDED = (
    "import functools\nimport jax\njax.distributed.initialize()\n"
    "@functools.partial(jax.jit, in_shardings=s, out_shardings=r)\ndef score(x):\n    return x.mean()\n"
    "if jax.process_index() == 0:\n    print(score(x))\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a function that jit compiles with shardings is called by process 0 alone": (
            ScriptFacts(source=_SHARDED),
            "score is compiled for shards on the devices of all processes, and runs only where "
            "jax.process_index() == 0",
        ),
        "one process computes with an array of all processes": (
            ScriptFacts(source=_GLOBAL),
            "x is an array of all processes, and sum of it runs only where jax.process_index() == 0",
        ),
        "one process runs a `pmap` over the devices of all processes": (
            ScriptFacts(
                source="import jax\nstep = jax.pmap(f, axis_name='i')\ndef score(g, x):\n"
                "    return g(x)\nif jax.process_index() == 0:\n    score(step, x)\n"
            ),
            "step, which pmap runs on the devices of all processes, runs in line 4 only where "
            "jax.process_index() == 0",
        ),
        "one rank validates in a function with a DDP model that has BatchNorm": (
            ScriptFacts(
                source=_HEAD
                + _NET
                + _VALIDATE
                + "model = DDP(Net())\nif dist.get_rank() == 0:\n    validate(model, data)\n"
            ),
            "the DDP model model, whose forward broadcasts its buffers, runs in line 9 only where "
            "dist.get_rank() == 0",
        ),
        "one rank runs a DDP model that has BatchNorm": (
            ScriptFacts(
                source=_HEAD + "import torchvision\nnet = torchvision.models.resnet50().cuda()\n"
                "model = DDP(net)\nif rank == 0:\n    y = model(x)\n"
            ),
            "the DDP model model, whose forward broadcasts its buffers, runs only where rank == 0",
        ),
        "one rank validates with a DDP model made elsewhere, and the others wait in a barrier": (
            ScriptFacts(
                source=_HEAD + "def main(net):\n    model = DDP(net.cuda())\n    if rank == 0:\n"
                "        y = model(x)\n    dist.barrier()\n"
            ),
            "the DDP model model, whose forward broadcasts its buffers if it has any (BatchNorm, for "
            "example), runs only where rank == 0",
        ),
        "one rank runs a forward and a backward of a DDP model": (
            ScriptFacts(
                source=_HEAD + "model = DDP(make())\nif rank == 0:\n    loss = model(x).sum()\n"
                "    loss.backward()\n"
            ),
            "the DDP model model, whose backward meets all ranks, runs only where rank == 0",
        ),
        "one rank runs a DDP model that is an attribute of a trainer": (
            ScriptFacts(
                source=_HEAD + _NET + "class Trainer:\n    def __init__(self):\n"
                "        self.model = DDP(Net())\n    def validate(self, x):\n        self.model(x)\n"
                "    def fit(self):\n        if self.rank == 0:\n            y = self.model(x)\n"
            ),
            "the DDP model self.model, whose forward broadcasts its buffers, runs only where self.rank == 0",
        ),
        "one rank runs an FSDP model": (
            ScriptFacts(
                source="from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
                "model = FSDP(make())\nif rank == 0:\n    print(model(x))\n"
            ),
            "the FSDP model model, whose forward gathers its shards, runs only where rank == 0",
        ),
        "one rank runs a DeepSpeed engine under ZeRO-3": (
            ScriptFacts(
                source="import deepspeed\nengine, _, _, _ = deepspeed.initialize(net, config='zero3.json')\n"
                "if rank == 0:\n    print(engine(x))\n"
            ),
            "the ZeRO-3 model engine, whose forward gathers its shards, runs only where rank == 0",
        ),
        "one rank evaluates with Horovod's MetricAverageCallback": (
            ScriptFacts(
                source=_HOROVOD + "if hvd.rank() == 0:\n"
                "    model.evaluate(test, callbacks=[hvd.callbacks.MetricAverageCallback()])\n"
            ),
            "evaluate runs only where hvd.rank() == 0, and MetricAverageCallback meets all ranks in it",
        ),
        "one worker evaluates a Keras model of MultiWorkerMirroredStrategy": (
            ScriptFacts(
                source="import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\n"
                "with s.scope():\n    model = make()\nmodel.fit(data)\nif task_id == 0:\n"
                "    model.evaluate(test)\n"
            ),
            "evaluate runs only where task_id == 0, and MultiWorkerMirroredStrategy meets all ranks in it",
        ),
        "one worker saves a Keras model of MultiWorkerMirroredStrategy": (
            ScriptFacts(
                source="import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\n"
                "with s.scope():\n    model = make()\nmodel.fit(data)\nif task_id == 0:\n"
                "    model.save('out')\n"
            ),
            "save runs only where task_id == 0, and MultiWorkerMirroredStrategy meets all ranks in it",
        ),
    },
    silent_on={
        "one rank runs a DDP model made elsewhere, and nobody waits for it": ScriptFacts(
            source=_HEAD
            + "from model import Net\nmodel = DDP(Net())\nif rank == 0:\n    y = model(x)\n"
        ),
        "one rank runs a DDP model of linear layers, and the others wait in a barrier": ScriptFacts(
            source=_HEAD
            + "model = DDP(nn.Linear(8, 8))\nif rank == 0:\n    y = model(x)\ndist.barrier()\n"
        ),
        "all processes call the function that jit compiles with shardings": ScriptFacts(
            source=_SHARDED.replace("    print(score(x))", "    pass\nprint(score(x))")
        ),
        "one process prints what all have computed with an array of all processes": ScriptFacts(
            source=_GLOBAL.replace("    print(jnp.sum(x))", "    print(s)").replace(
                "if jax", "s = jnp.sum(x)\nif jax"
            )
        ),
        "one process computes with an array of its own": ScriptFacts(
            source=_GLOBAL.replace("jax.make_array_from_process_local_data(s, a)", "jnp.ones(3)")
        ),
        "one process runs a `pmap` over its own devices": ScriptFacts(
            source="import jax\nstep = jax.pmap(f, devices=jax.local_devices())\n"
            "if jax.process_index() == 0:\n    step(x)\n"
        ),
        "one rank runs a DeepSpeed engine under ZeRO-1, which shards no parameters": ScriptFacts(
            source="import deepspeed\nengine, _, _, _ = deepspeed.initialize(net, config='zero1.json')\n"
            "if rank == 0:\n    print(engine(x))\n"
        ),
        "one rank validates with `model.module`, the model inside DDP": ScriptFacts(
            source=_HEAD
            + _NET
            + _VALIDATE
            + "model = DDP(Net())\nif rank == 0:\n    validate(model.module, data)\n    model.module(x)\n"
        ),
        "all ranks validate with the DDP model": ScriptFacts(
            source=_HEAD
            + _NET
            + _VALIDATE
            + "model = DDP(Net())\nvalidate(model, data)\nif rank == 0:\n    print('done')\n"
        ),
        "one rank validates with a DDP model that is not known to have buffers": ScriptFacts(
            source=_HEAD
            + _VALIDATE
            + "model = DDP(GPT(config))\nif rank == 0:\n    validate(model, data)\n"
        ),
        "one rank runs a DDP model with `broadcast_buffers=False`": ScriptFacts(
            source=_HEAD + _NET + "model = DDP(Net(), broadcast_buffers=False)\nif rank == 0:\n"
            "    print(model(x))\n"
        ),
        "both branches run the DDP model": ScriptFacts(
            source=_HEAD
            + _NET
            + _VALIDATE
            + "model = DDP(Net())\nif rank == 0:\n    validate(model, data)\nelse:\n    model(x)\n"
        ),
        "one rank validates with the model that DDP wraps": ScriptFacts(
            source=_HEAD
            + _NET
            + _VALIDATE
            + "net = Net()\nmodel = DDP(net)\nif rank == 0:\n    validate(net, data)\n"
        ),
        "one rank runs the model before DDP wraps it under the same name": ScriptFacts(
            source=_HEAD
            + _NET
            + "model = Net()\nif rank == 0:\n    print(model(x))\nmodel = DDP(model)\n"
        ),
        "one rank runs a parameter named `model`, which is given `model.module`": ScriptFacts(
            source=_HEAD + _NET + "def show(model):\n    if rank == 0:\n        print(model(x))\n"
            "def main():\n    model = DDP(Net())\n    show(model.module)\n"
        ),
        "one rank runs the model after it is unwrapped again": ScriptFacts(
            source=_HEAD + _NET + "model = DDP(Net())\ntrain(model)\nmodel = model.module\n"
            "if rank == 0:\n    print(model(x))\n"
        ),
        "one rank only reads the state dict of the DDP model": ScriptFacts(
            source=_HEAD
            + _NET
            + "def save(net):\n    write(net.state_dict())\nmodel = DDP(Net())\n"
            "if rank == 0:\n    save(model)\n"
        ),
        "one worker saves a Keras model to a single file (`out.h5`)": ScriptFacts(
            source="import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\n"
            "with s.scope():\n    model = make()\nmodel.fit(data)\nif task_id == 0:\n"
            "    model.save('out.h5')\n"
        ),
        "one worker saves a NumPy array": ScriptFacts(
            source="import numpy as np\nimport tensorflow as tf\n"
            "s = tf.distribute.MultiWorkerMirroredStrategy()\nwith s.scope():\n    model = make()\n"
            "model.fit(data)\nif task_id == 0:\n    np.save('x.npy', x)\n"
        ),
        "all ranks train with MetricAverageCallback, and one evaluates without it": ScriptFacts(
            source=_HOROVOD + "callbacks = [hvd.callbacks.MetricAverageCallback()]\n"
            "model.fit(train, callbacks=callbacks)\nif hvd.rank() == 0:\n    model.evaluate(test)\n"
        ),
        "one rank evaluates with a callback that meets no other rank (TensorBoard)": ScriptFacts(
            source=_HOROVOD + "if hvd.rank() == 0:\n"
            "    model.evaluate(test, callbacks=[keras.callbacks.TensorBoard()])\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
