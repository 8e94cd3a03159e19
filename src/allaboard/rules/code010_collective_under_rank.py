"""A collective is called under a condition on the rank.

## Why it matters
A collective returns only when *every* rank of its group has entered it. Under `if rank == 0` the others
never enter it: rank 0 waits in it until the timeout, and the ranks that went on stop at their next
collective, which pairs with this one. Asking an FSDP model for its whole `state_dict` is such a call: every
rank contributes its shard. So are `get_model_state_dict` with `full_state_dict=True` (FSDP2), and
accelerate's `save_state` and `save_model` of a model in shards. A decorator such as `rank_zero_only` is a
condition on the rank, too.

## What to do
Move the collective out of the branch; leave inside only what that rank does alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.call_graph import CallGraph, call_graph_of
from allaboard.formats.python.collective_calls import (
    COLLECTIVE_CALLS,
    FRAMEWORK_WORDS,
    JOINT_CONSTRUCTORS,
    JOINT_PROPERTIES,
    enters_collective,
    is_limited_to_group,
    joint_properties,
    meets_other_ranks,
)
from allaboard.formats.python.guarded_collectives import GuardedCall, find_guarded_calls
from allaboard.formats.python.rank_conditions import one_rank_decorator
from allaboard.formats.python.script_ast import Function, Script, ends_program, read_script


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(top in facts.source for top in FRAMEWORK_WORDS):
        return
    script = read_script(facts)
    reach = call_graph_of(script)
    for guarded_call in find_guarded_calls(script, reach):
        yield _claim(script, guarded_call)
    yield from _in_functions_of_one_rank(script, reach)


def _in_functions_of_one_rank(script: Script, reach: CallGraph) -> Iterator[Claim]:
    """Report collectives in functions that a decorator lets only one rank run."""
    for name, call in (*script.calls, *joint_properties(script)):
        function = script.enclosing_function(call)
        decorator = one_rank_decorator(script, function) if function is not None else None
        if function is None or decorator is None or script.rank_condition(call) is not None:
            continue
        direct = enters_collective(name, call)
        entered = [(name, call)] if direct else reach.certain_calls(call, COLLECTIVE_CALLS)
        for entered_name, inner in entered:
            if entered_name in JOINT_CONSTRUCTORS or is_limited_to_group(entered_name, inner):
                continue
            if entered_name.startswith("speechbrain."):
                continue  # its barriers do nothing in what its `main_process_only` decorates
            if meets_other_ranks(entered_name, script):
                yield _decorated_claim(script, call, entered_name, function, decorator)
                break


def _decorated_claim(
    script: Script, call: ast.Call, entered: str, function: Function, decorator: ast.expr
) -> Claim:
    limits = f"@{ast.unparse(decorator)}"
    return Claim(
        summary=f"{entered.rpartition('.')[2]} is entered only by one rank: {limits} lets no other run "
        f"{function.name}, and it waits for all ranks",
        evidence=(script.evidence_for(call), script.evidence_for(decorator)),
        fix=f"{_statement_text(script, call)}   # outside of {function.name}, or without {limits}",
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


def _claim(script: Script, guarded_call: GuardedCall) -> Claim:
    short, called_by_all = (
        guarded_call.name.rpartition(".")[2],
        guarded_call.name in JOINT_CONSTRUCTORS,
    )
    evidence = [script.evidence_for(guarded_call.call)]
    if guarded_call.condition.lineno != guarded_call.call.lineno:
        evidence.append(script.evidence_for(guarded_call.condition))
    description = short
    if guarded_call.inner is not guarded_call.call:
        caller = script.call_name(guarded_call.call.func).removeprefix("?.")
        description = f"{short} in line {guarded_call.inner.lineno} (by {caller}())"
        evidence.insert(1, script.evidence_for(guarded_call.inner))
    return Claim(
        summary=f"{description} is {'called' if called_by_all else 'entered'} only where "
        f"{script.reached_where(guarded_call.call, guarded_call.condition)}: "
        + ("all ranks must call it" if called_by_all else "it waits for all ranks"),
        evidence=tuple(evidence),
        fix=f"{_statement_text(script, guarded_call.call)}   "
        f"# {_where_to_move(script, guarded_call.call, guarded_call.condition)}",
        certainty=Certainty.LIKELY,
        where=script.place_of(guarded_call.call),
    )


def _statement_text(script: Script, call: ast.Call) -> str:
    """Return the text to move: the whole line if it holds only this statement, else the call."""
    if ast.unparse(call.func) in JOINT_PROPERTIES:
        return ast.unparse(call.func)
    statement = script.parents.get(call)
    line = script.source_line(call)
    alone = isinstance(statement, ast.stmt) and line == ast.get_source_segment(
        "\n".join(script.lines), statement
    )
    return line if alone or call.end_lineno != call.lineno else ast.unparse(call)


def _where_to_move(script: Script, call: ast.Call, condition: ast.If) -> str:
    if not script.is_after(call, condition):
        return f"outside of the if of line {condition.lineno}"
    leaving_statement = condition.body[-1]
    leaving_verb = (
        "end" if ends_program(condition.body) else type(leaving_statement).__name__.lower()
    )
    line_note = (
        ""
        if leaving_statement.lineno == condition.lineno
        else f" in line {leaving_statement.lineno}"
    )
    return f"move it above the if of line {condition.lineno}: the other ranks {leaving_verb}{line_note}"


_HEAD = "import torch.distributed as dist\n"
_FSDP = (
    _HEAD + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    "model = FSDP(net)\n"
)
_FSDP2 = (
    _HEAD + "from torch.distributed.fsdp import fully_shard\n"
    "from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict\n"
    "fully_shard(model)\no = StateDictOptions(full_state_dict=True)\n"
)
_ACCELERATE_FSDP = (
    "from accelerate import Accelerator, FullyShardedDataParallelPlugin\n"
    "a = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin())\n"
)
_BAR = (
    "from accelerate import Accelerator\nfrom tqdm import tqdm\na = Accelerator()\n"
    "bar = tqdm(range(9), disable=not a.is_main_process)\nfor x in data:\n    bar.update(1)\n"
    "    if bar.n % 3 == 0:\n        y = a.gather_for_metrics(x)\n"
)
_STRATEGY = (
    "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    "task_id = strategy.cluster_resolver.task_id\nif task_id == 0:\n"
    "    total = strategy.reduce('SUM', x, axis=None)\n"
)
_CACHED = (
    _HEAD + "def evaluate(args, split):\n    if args.local_rank not in [-1, 0]:\n"
    "        dist.barrier()\n    if args.local_rank == 0:\n        dist.barrier()\n"
)
_DECORATOR = (
    "def first(f):\n    def g(*a):\n        if dist.get_rank() == 0:\n            return f(*a)\n"
    "    return g\n"
)
_LIGHTNING = (
    "import lightning as L\nclass Lit(L.LightningModule):\n    def validation_step(self, b, i):\n"
    "        if self.global_rank == 0:\n            self.log('x', 1.0, sync_dist=SYNC)\n"
)
_BROADCAST = "hvd.callbacks.BroadcastGlobalVariablesCallback(0)"
_CALLBACKS = (
    "import horovod.keras as hvd\nhvd.init()\ncalls = LIST\n"
    "if hvd.rank() == 0:\n    calls.append(CALL)\n"
)
_GRAPH = (
    "import horovod.tensorflow as hvd\nbcast = hvd.broadcast_global_variables(0)\n"
    "if hvd.rank() == 0:\n    session.run(bcast)\n"
)
_JAX = "import jax\nfrom jax.experimental import multihost_utils as mu\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a reduce of TensorFlow's strategy on worker 0": (
            ScriptFacts(source=_STRATEGY),
            "reduce is entered only where task_id == 0: it waits for all ranks",
        ),
        "the state of a ZeroRedundancyOptimizer is collected by rank 0 alone": (
            ScriptFacts(
                source=_HEAD + "from torch.distributed.optim import ZeroRedundancyOptimizer\n"
                "opt = ZeroRedundancyOptimizer(p, SGD)\nif rank == 0:\n"
                "    opt.consolidate_state_dict(to=0)\n"
            ),
            "consolidate_state_dict is entered only where rank == 0: it waits for all ranks",
        ),
        "a gather by the count of a progress bar that only the main process shows": (
            ScriptFacts(source=_BAR),
            "gather_for_metrics is entered only where bar.n % 3 == 0: it waits for all ranks",
        ),
        "a barrier on one rank": (
            ScriptFacts(source=_HEAD + "if rank == 0:\n    save()\n    dist.barrier()\n"),
            "barrier is entered only where rank == 0: it waits for all ranks",
        ),
        "FSDP's `optim_state_dict` under `if self.args.should_save`": (
            ScriptFacts(
                source=_FSDP
                + "if self.args.should_save:\n    save(FSDP.optim_state_dict(model, opt))\n"
            ),
            "optim_state_dict is entered only where self.args.should_save: it waits for all ranks",
        ),
        "`torch.distributed.checkpoint.save` on one rank": (
            ScriptFacts(
                source=_HEAD + "import torch.distributed.checkpoint as dcp\n"
                "if rank == 0:\n    dcp.save(state, checkpoint_id='out')\n"
            ),
            "save is entered only where rank == 0: it waits for all ranks",
        ),
        "`ray.train.report` on one rank": (
            ScriptFacts(
                source="from ray import train\n"
                "if train.get_context().get_world_rank() == 0:\n    train.report({'loss': 1.0})\n"
            ),
            "report is entered only where train.get_context().get_world_rank() == 0: it waits for all "
            "ranks",
        ),
        "`comm.bcast` of mpi4py on one rank": (
            ScriptFacts(
                source="from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nrank = comm.Get_rank()\n"
                "if rank == 0:\n    x = comm.bcast(x, root=0)\n"
            ),
            "bcast is entered only where rank == 0: it waits for all ranks",
        ),
        "`comm.synchronize` of detectron2 on one rank": (
            ScriptFacts(
                source="from detectron2.utils import comm\nif comm.is_main_process():\n"
                "    save()\n    comm.synchronize()\n"
            ),
            "synchronize is entered only where comm.is_main_process(): it waits for all ranks",
        ),
        "`ddp_barrier` of speechbrain on one rank": (
            ScriptFacts(
                source="from speechbrain.utils.distributed import ddp_barrier, if_main_process\n"
                "if if_main_process():\n    save()\n    ddp_barrier()\n"
            ),
            "ddp_barrier is entered only where if_main_process(): it waits for all ranks",
        ),
        "a barrier of DeepSpeed on one rank": (
            ScriptFacts(
                source="import deepspeed.comm as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
            ),
            "barrier is entered only where dist.get_rank() == 0: it waits for all ranks",
        ),
        "`sync_global_devices` of JAX on one process": (
            ScriptFacts(
                source=_JAX + "if jax.process_index() == 0:\n    mu.sync_global_devices('saved')\n"
            ),
            "sync_global_devices is entered only where jax.process_index() == 0: it waits for all ranks",
        ),
        "`wait_for_everyone` of accelerate on the main process": (
            ScriptFacts(
                source="from accelerate import Accelerator\na = Accelerator()\n"
                "if a.is_main_process:\n    save()\n    a.wait_for_everyone()\n"
            ),
            "wait_for_everyone is entered only where a.is_main_process: it waits for all ranks",
        ),
        "rank 0 alone calls a function in which the others would wait for it at a barrier": (
            ScriptFacts(
                source=_HEAD
                + "def load(split):\n    if dist.get_rank() != 0:\n        dist.barrier()\n"
                "    data = build(split)\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
                "    return data\nfit(load('train'))\nif dist.get_rank() == 0:\n    score(load('test'))\n"
            ),
            "barrier in line 7 (by load()) is entered only where dist.get_rank() == 0: "
            "it waits for all ranks",
        ),
        "`allreduce` of Horovod on one rank": (
            ScriptFacts(
                source="import horovod.torch as hvd\nif hvd.rank() == 0:\n    mean = hvd.allreduce(loss)\n"
            ),
            "allreduce is entered only where hvd.rank() == 0: it waits for all ranks",
        ),
        "`trainer.validate` of Lightning on one rank": (
            ScriptFacts(
                source="import lightning.pytorch as pl\ntrainer = pl.Trainer(devices=4)\n"
                "trainer.fit(m)\nif trainer.is_global_zero:\n    trainer.validate(m)\n"
            ),
            "validate is entered only where trainer.is_global_zero: it waits for all ranks",
        ),
        "`all_gather` of a LightningModule on one rank": (
            ScriptFacts(
                source="import lightning as L\nclass M(L.LightningModule):\n    def on_test_end(self):\n"
                "        if self.trainer.is_global_zero:\n            x = self.all_gather(self.y)\n"
            ),
            "all_gather is entered only where self.trainer.is_global_zero: it waits for all ranks",
        ),
        "`save_checkpoint` of DeepSpeed on one rank": (
            ScriptFacts(
                source="import deepspeed\nengine, _, _, _ = deepspeed.initialize(model=net)\n"
                "if engine.global_rank == 0:\n    engine.save_checkpoint('out')\n"
            ),
            "save_checkpoint is entered only where engine.global_rank == 0: it waits for all ranks",
        ),
        "one rank runs the broadcast that a graph of TensorFlow has": (
            ScriptFacts(source=_GRAPH),
            "broadcast_global_variables is entered only where hvd.rank() == 0: it waits for all ranks",
        ),
        "`evaluate` of transformers' Trainer on one rank": (
            ScriptFacts(
                source="from transformers import Trainer\nt = Trainer(model)\nt.train()\n"
                "if t.is_world_process_zero():\n    print(t.evaluate())\n"
            ),
            "evaluate is entered only where t.is_world_process_zero(): it waits for all ranks",
        ),
        "a group that only its two members create": (
            ScriptFacts(
                source=_HEAD + "if dist.get_rank() in (0, 1):\n    pair = dist.new_group([0, 1])\n"
            ),
            "new_group is called only where dist.get_rank() in (0, 1): all ranks must call it",
        ),
        "a function with an all_reduce, called behind `dist.get_rank() == 0 and`": (
            ScriptFacts(
                source=_HEAD + "def best(x):\n    dist.all_reduce(x)\n    return x < 1\n"
                "if dist.get_rank() == 0 and best(x):\n    save()\n"
            ),
            "all_reduce in line 3 (by best()) is entered only where dist.get_rank() == 0: "
            "it waits for all ranks",
        ),
        "an all_reduce behind `rank != 0 or`": (
            ScriptFacts(source=_HEAD + "ok = rank != 0 or dist.all_reduce(x)\n"),
            "all_reduce is entered only where rank == 0: it waits for all ranks",
        ),
        "a barrier in a loop that only rank 0 runs": (
            ScriptFacts(source=_HEAD + "while rank == 0:\n    dist.barrier()\n"),
            "barrier is entered only where rank == 0: it waits for all ranks",
        ),
        "a barrier in one case of a `match` on the rank": (
            ScriptFacts(
                source=_HEAD
                + "match dist.get_rank():\n    case 0:\n        dist.barrier()\n    case _:\n        go()\n"
            ),
            "barrier is entered only where dist.get_rank() == 0: it waits for all ranks",
        ),
        "one rank reads Lightning's `log_dir`, which is broadcast to all": (
            ScriptFacts(
                source="import lightning as L\nclass M(L.LightningModule):\n    def on_fit_start(self):\n"
                "        if self.global_rank == 0:\n            print(self.trainer.log_dir)\n"
            ),
            "log_dir is entered only where self.global_rank == 0: it waits for all ranks",
        ),
        "one rank wraps its model by DDP": (
            ScriptFacts(
                source=_HEAD + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
                "if rank == 0:\n    model = DDP(model)\n"
            ),
            "DistributedDataParallel is called only where rank == 0: all ranks must call it",
        ),
        "an all_reduce under a variable that holds `rank == 0`": (
            ScriptFacts(
                source=_HEAD + "r = dist.get_rank()\nlead = r == 0\nif lead:\n"
                "    dist.all_reduce(x)\n"
            ),
            "all_reduce is entered only where lead: it waits for all ranks",
        ),
        "an all_reduce after the other ranks have returned": (
            ScriptFacts(
                source=_HEAD + "def main():\n    if dist.get_rank() > 0: return\n"
                "    dist.all_reduce(x)\n"
            ),
            "all_reduce is entered only where not (dist.get_rank() > 0): it waits for all ranks",
        ),
        "`state_dict` of an FSDP model on one rank": (
            ScriptFacts(source=_FSDP + "if rank == 0:\n    save(model.state_dict())\n"),
            "state_dict is entered only where rank == 0: it waits for all ranks",
        ),
        "`get_state_dict` of accelerate under FSDP on one rank": (
            ScriptFacts(
                source="from accelerate import Accelerator, FullyShardedDataParallelPlugin\n"
                "a = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin())\n"
                "if a.is_main_process:\n    state = a.get_state_dict(model)\n"
            ),
            "get_state_dict is entered only where a.is_main_process: it waits for all ranks",
        ),
        "the full state dict of an FSDP2 model on one rank": (
            ScriptFacts(
                source=_FSDP2 + "if rank == 0:\n    save(get_model_state_dict(model, options=o))\n"
            ),
            "get_model_state_dict is entered only where rank == 0: it waits for all ranks",
        ),
        "`save_model` of accelerate under FSDP on one rank": (
            ScriptFacts(
                source=_ACCELERATE_FSDP + "if a.is_main_process:\n    a.save_model(model, 'out')\n"
            ),
            "save_model is entered only where a.is_main_process: it waits for all ranks",
        ),
        "`save_state` of accelerate under DeepSpeed on one rank": (
            ScriptFacts(
                source="from accelerate import Accelerator, DeepSpeedPlugin\n"
                "a = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=1))\n"
                "if a.is_main_process:\n    a.save_state('out')\n"
            ),
            "save_state is entered only where a.is_main_process: it waits for all ranks",
        ),
        "one rank calls a function that calls an all_reduce": (
            ScriptFacts(
                source=_HEAD + "def mean(x):\n    dist.all_reduce(x)\n    return x / 4\n"
                "def report(x):\n    print(mean(x))\n"
                "def main():\n    if dist.get_rank() == 0:\n        report(loss)\n"
            ),
            "all_reduce in line 3 (by report()) is entered only where dist.get_rank() == 0: "
            "it waits for all ranks",
        ),
        "one rank calls a method that enters a barrier": (
            ScriptFacts(
                source=_HEAD + "class Trainer:\n    def save(self):\n"
                "        if not dist.is_initialized():\n            return\n"
                "        dist.barrier()\n    def fit(self):\n"
                "        if self.rank == 0:\n            self.save()\n"
            ),
            "barrier in line 6 (by self.save()) is entered only where self.rank == 0: it waits for all ranks",
        ),
        "only rank 0 evaluates, in a function in which it meets the others at a barrier": (
            ScriptFacts(
                source=_CACHED + "if args.local_rank in (-1, 0):\n    evaluate(args, 'dev')\n"
            ),
            "barrier in line 6 (by evaluate()) is entered only where args.local_rank in (-1, 0): "
            "it waits for all ranks",
        ),
        "a barrier in a function under Lightning's `@rank_zero_only`": (
            ScriptFacts(
                source=_HEAD + "from lightning.pytorch.utilities import rank_zero_only\n"
                "@rank_zero_only\ndef save():\n    dist.barrier()\n"
            ),
            "barrier is entered only by one rank: @rank_zero_only lets no other run save, "
            "and it waits for all ranks",
        ),
        "a reduce in a function under the script's own decorator for rank 0": (
            ScriptFacts(
                source=_HEAD + _DECORATOR + "@first\ndef report(x):\n    dist.reduce(x, 0)\n"
            ),
            "reduce is entered only by one rank: @first lets no other run report, and it waits for all ranks",
        ),
        "Lightning's `self.log` with `sync_dist=True` on one rank": (
            ScriptFacts(source=_LIGHTNING.replace("SYNC", "True")),
            "log is entered only where self.global_rank == 0: it waits for all ranks",
        ),
        "Horovod's callback that broadcasts the variables, on one rank": (
            ScriptFacts(source=_CALLBACKS.replace("LIST", "[]").replace("CALL", _BROADCAST)),
            "BroadcastGlobalVariablesCallback is called only where hvd.rank() == 0: all ranks must call it",
        ),
    },
    silent_on={
        "a barrier that all ranks reach where the option holds that lets the others stay": ScriptFacts(
            source=_HEAD + "def evaluate(whole, rank):\n    if not whole and rank != 0:\n"
            "        return\n    if whole:\n        dist.barrier()\n"
        ),
        "a reduce of TensorFlow's strategy on all workers": ScriptFacts(
            source=_STRATEGY.replace("    total", "    pass\ntotal")
        ),
        "a broadcast under an option that says what rank 0 does alone": ScriptFacts(
            source=_HEAD + "if args.load_rank0_only:\n    dist.broadcast_object_list(x, 0)\n"
        ),
        "a barrier of Horovod where there is a rank at all": ScriptFacts(
            source="import os\nimport horovod.torch as hvd\n"
            "own_rank = int(os.getenv('HOROVOD_RANK', -1))\n"
            "if hvd.is_initialized() and own_rank != -1:\n    hvd.barrier()\n"
        ),
        "the other ranks of Horovod join": ScriptFacts(
            source="import horovod.torch as hvd\nif hvd.rank() == 0:\n    hvd.join()\n"
            "else:\n    hvd.allreduce(x)\n"
        ),
        "rank 0 reads the state of a model that is sharded later": ScriptFacts(
            source=_FSDP2.replace("fully_shard(model)\n", "")
            + "if rank == 0:\n    state = get_model_state_dict(model, options=o)\n"
            "fully_shard(model)\n"
        ),
        "a barrier under a second condition that is alike on all ranks": ScriptFacts(
            source=_HEAD + "if rank == 0 and not whole or whole:\n    if whole:\n"
            "        dist.barrier()\n"
        ),
        "a gather by the count of a progress bar that all ranks have": ScriptFacts(
            source=_BAR.replace("disable=not a.is_main_process", "total=9")
        ),
        "all ranks evaluate in a function in which rank 0 goes first": ScriptFacts(
            source=_CACHED + "evaluate(args, 'dev')\n"
        ),
        "a reduce under a decorator that does not depend on the rank": ScriptFacts(
            source=_HEAD
            + _DECORATOR.replace("if dist.get_rank() == 0:", "if f:")
            + "@first\ndef report(x):\n    dist.reduce(x, 0)\n"
        ),
        "a print under the script's own decorator for rank 0": ScriptFacts(
            source=_HEAD + _DECORATOR + "@first\ndef report(x):\n    print(x)\n"
        ),
        "Lightning's `self.log` with `sync_dist=False` on one rank": ScriptFacts(
            source=_LIGHTNING.replace("SYNC", "False")
        ),
        "a checkpoint callback on one rank, and Horovod's broadcast on all": ScriptFacts(
            source=_CALLBACKS.replace("LIST", f"[{_BROADCAST}]").replace("CALL", "Checkpoint()")
        ),
        "`save_checkpoint` of a trainer that is not Lightning's": ScriptFacts(
            source="import torch\nclass Loop:\n    def end(self):\n        if self.rank == 0:\n"
            "            self.trainer.save_checkpoint('x.pt')\n"
        ),
        "`state_dict` of a DDP model on one rank": ScriptFacts(
            source=_HEAD + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
            "model = DDP(net)\nif rank == 0:\n    save(model.module.state_dict())\n"
        ),
        "`get_state_dict` of accelerate without shards, on one rank": ScriptFacts(
            source="from accelerate import Accelerator\na = Accelerator()\n"
            "if a.is_main_process:\n    save(a.get_state_dict(model))\n"
        ),
        "all ranks gather the state under FSDP, and one rank writes it": ScriptFacts(
            source=_ACCELERATE_FSDP
            + "state = a.get_state_dict(model)\nif a.is_main_process:\n    a.save(state, 'out.pt')\n"
        ),
        "`save_state` and `save_model` of accelerate on all ranks": ScriptFacts(
            source=_ACCELERATE_FSDP + "a.save_state('out')\na.save_model(model, 'out')\n"
        ),
        "`save_state` and `save_model` of accelerate without shards, on one rank": ScriptFacts(
            source="from accelerate import Accelerator\na = Accelerator()\n"
            "if a.is_main_process:\n    a.save_state('out')\n    a.save_model(model, 'out')\n"
        ),
        "the full state dict of an FSDP2 model on all ranks, written by one": ScriptFacts(
            source=_FSDP2 + "state = get_model_state_dict(model, options=o)\n"
            "if rank == 0:\n    save(state)\n"
        ),
        "one rank reads its own shards of an FSDP2 model, not the full state dict": ScriptFacts(
            source=_FSDP2.replace("full_state_dict=True", "cpu_offload=True")
            + "if rank == 0:\n    print(get_model_state_dict(model, options=o))\n"
        ),
        "the full state dict of a DDP model on one rank": ScriptFacts(
            source=_FSDP2.replace("fully_shard(model)", "model = DDP(model)")
            + "if rank == 0:\n    save(get_model_state_dict(model, options=o))\n"
        ),
        "all ranks call `state_dict` of FSDP in one mode, and one rank in another": ScriptFacts(
            source=_FSDP + "if sharded:\n    state = model.state_dict()\n"
            "elif rank == 0:\n    state = model.state_dict()\n"
        ),
        "FSDP with LOCAL_STATE_DICT, each rank's own shard": ScriptFacts(
            source=_FSDP + "FSDP.set_state_dict_type(model, StateDictType.LOCAL_STATE_DICT)\n"
            "if rank == 0:\n    save(model.state_dict())\n"
        ),
        "`sync_global_devices` of JAX on all processes": ScriptFacts(
            source=_JAX
            + "first = jax.process_index() == 0\nif first:\n    save()\nmu.sync_global_devices('s')\n"
            "x = mu.broadcast_one_to_all(x, is_source=first)\n"
        ),
        "a condition on a value that is broadcast to all ranks": ScriptFacts(
            source=_HEAD
            + "def agree(rank, size):\n    dist.broadcast(flag, 0)\n    return flag.item()\n"
            "if agree(rank, size):\n    dist.barrier()\n"
        ),
        "a group that its members alone create, with `use_local_synchronization=True`": ScriptFacts(
            source=_HEAD + "if rank < 2:\n"
            "    pair = dist.new_group([0, 1], use_local_synchronization=True)\n"
        ),
        "the members of a group wrap a model by DDP in that group": ScriptFacts(
            source=_HEAD + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
            "if rank < 2:\n    model = DDP(model, process_group=pair)\n"
        ),
        "`wait_for_everyone` on all ranks, before one saves": ScriptFacts(
            source="from accelerate import Accelerator\na = Accelerator()\na.wait_for_everyone()\n"
            "if a.is_main_process:\n    a.save(model)\n"
        ),
        "one rank tests with a second Trainer of Lightning for one device": ScriptFacts(
            source="import lightning.pytorch as pl\ntrainer = pl.Trainer(devices=4)\ntrainer.fit(m)\n"
            "if trainer.is_global_zero:\n    trainer = pl.Trainer(devices=1, num_nodes=1)\n"
            "    trainer.test(m)\n"
        ),
        "`save_model` of transformers' Trainer on one rank": ScriptFacts(
            source="from transformers import Trainer\nt = Trainer(model)\nt.train()\n"
            "if t.is_world_process_zero():\n    t.save_model('out')\n"
        ),
        "`allreduce` of Horovod in a process set of two ranks": ScriptFacts(
            source="import horovod.torch as hvd\nif hvd.rank() in (0, 1):\n"
            "    hvd.allreduce(x, process_set=pair)\n"
        ),
        "all ranks call a function in which the others wait for rank 0 at a barrier": ScriptFacts(
            source=_HEAD
            + "def load(split):\n    if dist.get_rank() != 0:\n        dist.barrier()\n"
            "    data = build(split)\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
            "    return data\ndata = load('test')\nif dist.get_rank() == 0:\n    score(data)\n"
        ),
        "both branches call a function in which the others wait for rank 0 at a barrier": ScriptFacts(
            source=_HEAD
            + "def load(split):\n    if dist.get_rank() != 0:\n        dist.barrier()\n"
            "    data = build(split)\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
            "    return data\nif dist.get_rank() == 0:\n    score(load('test'))\nelse:\n"
            "    load('test')\n"
        ),
        "a barrier after the branch of one rank": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    save()\ndist.barrier()\n"
        ),
        "the other ranks enter a barrier before they load, and rank 0 after it has loaded": ScriptFacts(
            source=_HEAD + "if rank != 0:\n    dist.barrier()\nload()\n"
            "if rank == 0:\n    dist.barrier()\n"
        ),
        "the other ranks enter a barrier and return, and rank 0 enters the next barrier": ScriptFacts(
            source=_HEAD + "def main():\n    if rank != 0:\n        dist.barrier()\n"
            "        return\n    dist.barrier()\n"
        ),
        "a condition that asks only whether the job is distributed": ScriptFacts(
            source=_HEAD + 'import os\nddp = int(os.environ.get("RANK", -1)) != -1\n'
            "if ddp:\n    dist.barrier()\n"
        ),
        "a condition that asks only whether RANK is set": ScriptFacts(
            source=_HEAD + 'import os\nif "RANK" in os.environ:\n    dist.barrier()\n'
            'if os.environ.get("RANK"):\n    dist.all_reduce(x)\n'
        ),
        "a parameter that has the name of another function's rank": ScriptFacts(
            source=_HEAD + "def one():\n    r = dist.get_rank()\n    print(r)\n"
            "def two(r):\n    if r == 0:\n        dist.barrier()\n"
        ),
        "a broadcast in a group that is passed by position": ScriptFacts(
            source=_HEAD + "r = dist.get_rank()\nif r < 2:\n    dist.broadcast(x, 0, pair)\n"
        ),
        "both branches call functions that enter the same barrier": ScriptFacts(
            source=_HEAD + "def meet():\n    dist.barrier()\ndef wait():\n    meet()\n"
            "if rank == 0:\n    download()\n    meet()\nelse:\n    wait()\n"
        ),
        "one branch calls broadcast, and the other a function that calls it": ScriptFacts(
            source=_HEAD + "def receive(x):\n    dist.broadcast(x, 0)\n"
            "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n    receive(x)\n"
        ),
        "the other ranks enter a barrier in a function, and rank 0 in a later branch": ScriptFacts(
            source=_HEAD + "def meet():\n    dist.barrier()\n"
            "if rank != 0:\n    meet()\nload()\nif rank == 0:\n    dist.barrier()\n"
        ),
        "both branches run the broadcast that a graph of TensorFlow has": ScriptFacts(
            source=_GRAPH + "else:\n    session.run(bcast)\n"
        ),
        "one rank runs what is no collective of a graph": ScriptFacts(
            source=_GRAPH.replace("run(bcast)", "run(summary)")
        ),
        "a function whose barrier an argument switches off": ScriptFacts(
            source=_HEAD
            + "def save(x, sync):\n    write(x)\n    if sync:\n        dist.barrier()\n"
            "if rank == 0:\n    save(x, False)\n"
        ),
        "a function that returns before its all_reduce because of an argument": ScriptFacts(
            source=_HEAD + "def mean(x, alone=False):\n    if alone:\n        return x\n"
            "    dist.all_reduce(x)\nif rank == 0:\n    mean(x, alone=True)\n"
        ),
        "a function with an all_reduce in the group that it is given": ScriptFacts(
            source=_HEAD + "def mean(x, group):\n    dist.all_reduce(x, group=group)\n"
            "if rank == 0:\n    mean(x, mine)\n"
        ),
        "a function that is a parameter, with the name of one that enters a barrier": ScriptFacts(
            source=_HEAD + "def meet():\n    dist.barrier()\ndef main(meet):\n"
            "    if rank == 0:\n        meet()\n"
        ),
        "a function with an all_reduce, called before `and rank == 0`": ScriptFacts(
            source=_HEAD + "def best(x):\n    dist.all_reduce(x)\n    return x < 1\n"
            "if best(x) and rank == 0:\n    save()\n"
        ),
        "a broadcast in every case of a `match` on the rank": ScriptFacts(
            source=_HEAD + "match rank:\n    case 0:\n        dist.broadcast(x, 0)\n    case _:\n"
            "        dist.broadcast(y, 0)\n"
        ),
        "a barrier in a `match` on something other than the rank": ScriptFacts(
            source=_HEAD + "match mode:\n    case 0:\n        dist.barrier()\n"
        ),
        "a barrier in a loop that all ranks run equally often": ScriptFacts(
            source=_HEAD + "while step < 9:\n    dist.barrier()\n"
        ),
        "`comm.bcast` of mpi4py in both branches": ScriptFacts(
            source="from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nif comm.Get_rank() == 0:\n"
            "    x = comm.bcast(x, root=0)\nelse:\n    x = comm.bcast(None, root=0)\n"
        ),
        "`ddp_barrier` in a function that speechbrain's `main_process_only` decorates": ScriptFacts(
            source="from speechbrain.utils.distributed import ddp_barrier, main_process_only\n"
            "@main_process_only\ndef save(x):\n    write(x)\n    ddp_barrier()\n"
        ),
        "`ddp_barrier` of speechbrain behind a condition on the rank": ScriptFacts(
            source="from speechbrain.utils.distributed import ddp_barrier, if_main_process\n"
            "if if_main_process():\n    save()\nddp_barrier()\n"
        ),
        "a barrier for a kind of checkpoint that all ranks write, beside one of some ranks": ScriptFacts(
            source=_HEAD + "if ready and (kind != Kind.OLD or dist.get_rank() == 0):\n"
            "    if kind == Kind.WHOLE:\n        dist.barrier()\n    else:\n        write(x)\n"
        ),
        "`ray.train.report` in both branches": ScriptFacts(
            source="from ray import train\nif train.get_context().get_world_rank() == 0:\n"
            "    train.report(m, checkpoint=c)\nelse:\n    train.report(m)\n"
        ),
        "a broadcast in both branches": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n"
            "    dist.broadcast(y, 0)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
