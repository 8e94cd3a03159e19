"""NCCL is used, but all processes of a host use one GPU.

## Why it matters
`.cuda()` and `"cuda"` mean GPU 0 until `torch.cuda.set_device` says otherwise. All ranks of a host then
share GPU 0: NCCL refuses two ranks on one device, or hangs in the first collective, while the other GPUs
stand idle. `set_device(1)` is no better: it is GPU 1 for all of them. A script that sets
`CUDA_VISIBLE_DEVICES = "0"` shows that one GPU to each. Processes of Horovod share GPU 0 in the same way. And
on several hosts, the rank among all of them is no number of a GPU.

## What to do
Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before `init_process_group`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.environment_writes import environment_writes
from allaboard.formats.python.evaluation import evaluate, integer
from allaboard.formats.python.flow.child_processes import launches
from allaboard.formats.python.flow.fixed_ranks import is_unconditional, joins
from allaboard.formats.python.flow.host_numbers import is_rank_among_hosts
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_INIT = "torch.distributed.init_process_group"
_DEVICE_BY_PROCESS = re.compile(
    r"CUDA_VISIBLE_DEVICES|local_?rank|LOCALID|device_?count|gpu_?(?:id|index)|set_device\([^)]*rank",
    re.I,
)
"""Matches what gives each process a GPU of its own."""

_OBJECT_COLLECTIVES = tuple(
    f"torch.distributed.{name}"
    for name in (
        "all_gather_object",
        "broadcast_object_list",
        "gather_object",
        "scatter_object_list",
    )
)

_SEVERAL_HOSTS = re.compile(r"SLURM_(?:JOB_)?(?:NUM_|N)NODES|SLURM_NODEID|SLURM_(?:JOB_)?NODELIST")
"""Matches scripts that ask Slurm for their hosts."""
_OTHER_DEVICE = re.compile(r"cuda:(?!0\b)|cuda['\"], ?(?!0\b)")
"""Matches a device other than the first."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    if "horovod" in facts.source:
        yield from _horovod(script, facts.source)
    if script.uses_launching_library:
        return
    yield from _one_visible(script)
    inits = [c for c in script.calls_of(_INIT) if _uses_nccl(script, c)]
    fixed = _fixed_device(script, facts.source) if script.calls_of(_INIT) else None
    if fixed is not None:
        call, number = fixed
        yield Claim(
            summary=f"every process of a host uses GPU {number}: its number is fixed in the script",
            evidence=(script.evidence_for(call), script.evidence_for(script.calls_of(_INIT)[0])),
            fix='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return
    if inits and _SEVERAL_HOSTS.search(facts.source) and "CUDA_VISIBLE_DEVICES" not in facts.source:
        yield from _device_of_rank(script)
    if facts.is_piece or not inits or _chooses_device(script, facts.source):
        return
    if any(integer(script, call_argument(c, "world_size", 3)) == 1 for c in inits):
        return
    default_use = _default_device_use(script)
    home = script.enclosing_function(inits[0])
    is_for_others = home is not None and not script.name_uses(home)
    if default_use is None or (is_for_others and "__main__" not in facts.source):
        return  # the script that calls it may select the GPU
    yield Claim(
        summary="every process of a host uses GPU 0: none selects a GPU of its own",
        evidence=(script.evidence_for(default_use), script.evidence_for(inits[0])),
        fix='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))   # '
        f"before line {inits[0].lineno}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(inits[0]),
    )


def _device_of_rank(script: Script) -> Iterator[Claim]:
    """Report a GPU whose number is the rank among all hosts, in a job of several hosts."""
    for call in script.calls_of("torch.cuda.set_device"):
        passed = call_argument(call, "device", 0)
        if passed is None or not is_rank_among_hosts(script, passed):
            continue
        yield Claim(
            summary=f"{ast.unparse(passed)[:40]} is the rank among all hosts, and a host numbers its GPUs "
            "from 0: on the second host there is no such GPU",
            evidence=(script.evidence_for(call),),
            fix='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))   # srun: SLURM_LOCALID',
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _one_visible(script: Script) -> Iterator[Claim]:
    """Report one GPU that the script makes visible to every process."""
    inits = [c for c in script.calls_of(_INIT) if _uses_nccl(script, c)]
    writes = list(environment_writes(script, "CUDA_VISIBLE_DEVICES"))
    if not inits or len(writes) != 1 or _has_rank_of_its_own(script) or any(launches(script)):
        return
    (write,) = writes
    value = evaluate(script, write.value)
    if not isinstance(value, str) or not value.isdecimal() or write.is_default:
        return
    if not is_unconditional(script, write.node):
        return
    if any(integer(script, call_argument(c, "world_size", 3)) == 1 for c in inits):
        return
    yield Claim(
        summary=f"every process of a host sees GPU {value} alone: its number is fixed in the script",
        evidence=(script.evidence_for(write.node), script.evidence_for(inits[0])),
        fix='os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(write.node),
    )


def _horovod(script: Script, source: str) -> Iterator[Claim]:
    """Report processes of Horovod for PyTorch that all use the first GPU."""
    inits = script.calls_of("horovod.torch.init")
    if not inits or _DEVICE_BY_PROCESS.search(source) or _chooses_device(script, source):
        return
    default_use = _default_device_use(script)
    if default_use is None:
        return
    module = ast.unparse(inits[0].func).rpartition(".")[0] or "hvd"
    yield Claim(
        summary="every process of a host uses GPU 0: none selects a GPU of its own",
        evidence=(script.evidence_for(default_use), script.evidence_for(inits[0])),
        fix=f"torch.cuda.set_device({module}.local_rank())   # after line {inits[0].lineno}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(inits[0]),
    )


def _fixed_device(script: Script, source: str) -> tuple[ast.Call, int] | None:
    """Return the call that selects the same GPU in every process, and its number; None if there is none."""
    if _DEVICE_BY_PROCESS.search(source) or "gloo" in source:
        return None
    calls = script.calls_of("torch.cuda.set_device")
    models = [
        call
        for name, call in script.calls
        if name == "torch.nn.parallel.DistributedDataParallel"
        and isinstance(call_argument(call, "device_ids", 1), ast.List)
    ]
    for call in calls or models:
        device = call_argument(call, "device" if calls else "device_ids", 0 if calls else 1)
        number = _device_number(script, device)
        if number is None or not is_unconditional(script, call):
            return None
        sizes = {integer(script, call_argument(c, "world_size", 3)) for c in script.calls_of(_INIT)}
        return None if 1 in sizes or _has_rank_of_its_own(script) else (call, number)
    return None


def _device_number(script: Script, device: ast.expr | None) -> int | None:
    resolved = resolve(script, device) if device is not None else None
    if isinstance(resolved, ast.Call) and script.call_name(resolved.func) == "torch.device":
        device = call_argument(resolved, "index", 1) or (
            resolved.args[0] if resolved.args else None
        )
    value = evaluate(script, device)
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, str) and value.startswith("cuda:"):
        value = value.removeprefix("cuda:")
    text = str(value)
    return int(text) if text.isdecimal() else None


def _has_rank_of_its_own(script: Script) -> bool:
    """Return True if the script may be that of one member, whose rank it states."""
    return any(integer(script, join.rank) is not None for join in joins(script))


def _uses_nccl(script: Script, call: ast.Call) -> bool:
    backend = evaluate(script, call_argument(call, "backend", 0))
    return backend == "nccl" and call_argument(call, "device_id") is None


def _chooses_device(script: Script, source: str) -> bool:
    """Return True if the script chooses a device in any way."""
    if "CUDA_VISIBLE_DEVICES" in source or "set_device" in source or "device_ids" in source:
        return True
    return bool(script.calls_of("torch.cuda.device")) or _OTHER_DEVICE.search(source) is not None


def _default_device_use(script: Script) -> ast.AST | None:
    """Return the call that uses the default GPU, or None."""
    for call in script.method_calls("cuda"):
        if not call.args and not call.keywords:
            return call
    for call in script.method_calls("to"):
        device = call_argument(call, "device", 0)
        if device is not None and _is_default_device(script, device):
            return call
    # NCCL sends pickled objects through the current GPU.
    return next(iter(script.calls_of(*_OBJECT_COLLECTIVES)), None)


def _is_default_device(script: Script, device: ast.expr) -> bool:
    """Return True for "cuda", "cuda:0" and devices made of it, also where there may be no GPU at all."""
    device = resolve(script, device)
    if isinstance(device, ast.IfExp):
        # With NCCL there are GPUs.
        branches = [device.body, device.orelse]
        gpu = [b for b in branches if evaluate(script, b) != "cpu" and not _is_cpu(script, b)]
        return len(gpu) == 1 and _is_default_device(script, gpu[0])
    if isinstance(device, ast.Call) and script.call_name(device.func) == "torch.device":
        alone = len(device.args) == 1 and not device.keywords
        return alone and _is_default_device(script, device.args[0])
    return evaluate(script, device) in ("cuda", "cuda:0")


def _is_cpu(script: Script, device: ast.expr) -> bool:
    return (
        isinstance(device, ast.Call)
        and len(device.args) == 1
        and evaluate(script, device.args[0]) == "cpu"
    )


_OBJECTS = (
    'import torch.distributed as dist\ndist.init_process_group("nccl")\n'
    "dist.all_gather_object(out, [1])\n"
)
_INIT_TEXT = 'import torch\nimport torch.distributed as dist\ndist.init_process_group("nccl")\n'
_SLURM = (
    'import os\nimport torch\nimport torch.distributed as dist\ndist.init_process_group("nccl")\n'
    'rank, hosts = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NNODES"])\n'
    "torch.cuda.set_device(rank)\n"
)
_HOROVOD = "import torch\nimport horovod.torch as hvd\nhvd.init()\nmodel = Net().cuda()\n"
_DEVICE = (
    _INIT_TEXT + 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    "model = Net().to(device)\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the GPU has the number of the rank in a job of several hosts": (
            ScriptFacts(source=_SLURM),
            "rank is the rank among all hosts, and a host numbers its GPUs from 0: on the second host there "
            "is no such GPU",
        ),
        "objects are gathered by NCCL, and no process selects a GPU": (
            ScriptFacts(source=_OBJECTS),
            "every process of a host uses GPU 0: none selects a GPU of its own",
        ),
        "CUDA_VISIBLE_DEVICES is 0 in every process": (
            ScriptFacts(
                source="import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n"
                + _INIT_TEXT
                + "model = Net().cuda()\n"
            ),
            "every process of a host sees GPU 0 alone: its number is fixed in the script",
        ),
        "a Horovod script that selects no GPU": (
            ScriptFacts(source=_HOROVOD),
            "every process of a host uses GPU 0: none selects a GPU of its own",
        ),
        "`.cuda()` without a selected GPU": (
            ScriptFacts(source=_INIT_TEXT + "model = Net().cuda()\n"),
            "every process of a host uses GPU 0: none selects a GPU of its own",
        ),
        "the device `cuda` without a number, if there is any GPU": (
            ScriptFacts(source=_DEVICE),
            "every process of a host uses GPU 0: none selects a GPU of its own",
        ),
        "`torch.cuda.set_device(1)` in every process": (
            ScriptFacts(source=_INIT_TEXT + "torch.cuda.set_device(1)\nmodel = Net().cuda()\n"),
            "every process of a host uses GPU 1: its number is fixed in the script",
        ),
        "DDP with `device_ids=[0]` in every process": (
            ScriptFacts(
                source=_INIT_TEXT + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
                "model = DDP(Net().to('cuda:0'), device_ids=[0])\n"
            ),
            "every process of a host uses GPU 0: its number is fixed in the script",
        ),
    },
    silent_on={
        "the GPU has the rank's number modulo the GPUs of a host": ScriptFacts(
            source=_SLURM.replace(
                "set_device(rank)", "set_device(rank % torch.cuda.device_count())"
            )
        ),
        "the GPU has the number of the task on its host": ScriptFacts(
            source=_SLURM.replace("SLURM_PROCID", "SLURM_LOCALID")
        ),
        "objects are gathered by Gloo": ScriptFacts(source=_OBJECTS.replace("nccl", "gloo")),
        "two GPUs visible to all processes, of which each takes its own": ScriptFacts(
            source="import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\n"
            + _INIT_TEXT
            + "model = Net().to(rank)\n"
        ),
        "a Horovod script that selects the GPU by `hvd.local_rank()`": ScriptFacts(
            source=_HOROVOD + "torch.cuda.set_device(hvd.local_rank())\n"
        ),
        "the device `cuda` with the rank as its number": ScriptFacts(
            source=_DEVICE.replace('"cuda"', 'f"cuda:{rank}"')
        ),
        "the device `cuda`, or one from the command line": ScriptFacts(
            source=_DEVICE.replace('"cpu"', "args.device")
        ),
        "CUDA_VISIBLE_DEVICES shows each process a GPU of its own": ScriptFacts(
            source=_INIT_TEXT
            + "os.environ['CUDA_VISIBLE_DEVICES'] = gpu\ntorch.cuda.set_device(0)\n"
        ),
        "a fixed GPU in a branch that an option chooses": ScriptFacts(
            source=_INIT_TEXT + "if args.single:\n    torch.cuda.set_device(0)\n"
        ),
        "`torch.cuda.set_device(rank)` before `.cuda()`": ScriptFacts(
            source=_INIT_TEXT + "torch.cuda.set_device(rank)\nmodel = Net().cuda()\n"
        ),
        "a world of one process": ScriptFacts(
            source=_INIT_TEXT.replace('"nccl"', '"nccl", rank=0, world_size=1')
            + "model = Net().cuda()\n"
        ),
        "a model that is moved by `.to(rank)`": ScriptFacts(
            source=_INIT_TEXT + "model = Net().to(rank)\n"
        ),
        "the gloo backend, under which processes may share a GPU": ScriptFacts(
            source=_INIT_TEXT.replace("nccl", "gloo") + "model = Net().cuda()\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
