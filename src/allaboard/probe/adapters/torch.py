"""PyTorch: its inits, the collectives of `torch.distributed`, optimizer steps, DataLoader.

Hooked and tried on torch 2.13; what older ones lack is in docs/versions.md. Functions are replaced in
``distributed_c10d`` right after it has executed, before anything can take a reference to them. DDP's
own all-reduces run in C++ inside backward; what is seen of them is that its reducer is due, and the
backward in which they run.
"""

from __future__ import annotations

import functools
import os
import sys
import time

from .. import hooks, member, visible_devices
from ..signal_errors import reraise_from_handler
from ._torch import accelerate, cuda_graphs, phases, rpc
from ._torch import collectives as record
from ._torch import compiled_graphs as compiled
from ._torch import ddp_backward as gradients
from ._torch import ddp_forward as forward
from ._torch import functional_collectives as functional
from ._torch import point_to_point as messages
from ._torch import tensor_numbers as tensors
from ._torch import torch1_compat as first
from ._torch.collective_signatures import DESCRIBE
from ._torch.data_loader import loader
from ._torch.step_number import Steps
from ._torch.work_wait import Waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LET_GO = 0.005
"""Seconds that the threads of process groups have at the interpreter's end."""


def _distributed(module: Any) -> None:
    names = set(getattr(module, "__all__", ()))
    recorder = _recorder(module)
    grouped = hasattr(module, "_world")
    if not grouped and first.is_known_version(module):
        recorder.module, grouped = first.Groups(module), True
    if not grouped:
        member.here.lacks(
            "torch.distributed", "_world: whether calls of all ranks match is not known"
        )
    native = sys.modules.get("torch._C._distributed_c10d")
    work = getattr(native, "Work", None)
    waits = recorder.waits = Waits(work) if hasattr(work, "wait") else None
    for name in (*DESCRIBE, *messages.BLOCKING, *messages.UNDER_WAY):
        call = getattr(module, name, None)
        if callable(call) and (name in names or not names):
            if name in messages.UNDER_WAY:
                wrapped = messages.begun(name, waits.entered(call) if waits is not None else call)
            elif name in messages.BLOCKING or not grouped:
                wrapped = hooks.waiting(name, call, messages.BLOCKING.get(name))
            else:
                wrapped = record.recorded(recorder, name, call)
            setattr(module, name, wrapped)
    destroy = getattr(module, "destroy_process_group", None)
    if destroy is not None:
        module.destroy_process_group = _destroying(recorder, destroy)
    # In this module: `torch.distributed` copies its names as soon as it has executed.
    module.init_process_group = hooks.joining(module.init_process_group, read_declaration)
    # DDP's own all-reduces run in C++, and pass through none of the functions above.
    if hasattr(getattr(native, "Reducer", None), "prepare_for_backward"):
        gradients.reducer(recorder, native.Reducer)  # type: ignore[union-attr]
    elif native is not None:
        member.here.lacks("torch.nn.parallel", "Reducer.prepare_for_backward")
    several = getattr(module, "_coalescing_manager", None)
    if waits is not None and callable(several):
        module._coalescing_manager = waits.entered(several)


_recorders: list[record.Recorder] = []


def _recorder(module: Any = None) -> record.Recorder:
    """The one of this process; the modules that it hooks may be imported in any order."""
    if not _recorders:
        _recorders.append(record.Recorder(None))
    if module is not None:
        _recorders[0].module = module
    return _recorders[0]


def _destroying(recorder: record.Recorder, call: Any) -> Any:
    call = hooks.operation("destroy_process_group", call)

    @functools.wraps(call)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        finally:
            try:
                recorder.refresh_groups()
            except Exception as error:
                recorder.spoil()
                reraise_from_handler(error)

    return destroy_process_group


def _graph(module: Any) -> None:
    call = getattr(module, "_engine_run_backward", None)
    if call is not None:
        module._engine_run_backward = gradients.backward(_recorder(), call)


def _autograd(module: Any) -> None:
    if hasattr(getattr(module, "graph", None), "_engine_run_backward"):
        return
    if callable(getattr(module, "backward", None)):
        module.backward = first.backward(_recorder(), module.backward)
    else:
        member.here.lacks("torch.autograd", "_engine_run_backward")


def _join(module: Any) -> None:
    gradients.join(_recorder(), module.Join)


def _model(module: Any) -> None:
    recorder = _recorder()
    if recorder.module is not None and hasattr(recorder.module, "_world"):
        forward.hook(recorder, module)


def _functional(module: Any) -> None:
    recorder = _recorder()
    if recorder.module is not None and hasattr(recorder.module, "_world"):
        functional.hook(recorder, module)


def read_declaration(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the declaration of init_process_group: its arguments first, the environment second."""
    names = ("backend", "init_method", "timeout", "world_size", "rank", "store")
    arguments = dict(zip(names, args), **kwargs)
    method = arguments.get("init_method") or "env://"
    rank, size = arguments.get("rank", -1), arguments.get("world_size", -1)
    origin = "arguments of init_process_group" if rank is not None and rank >= 0 else "RANK"
    if method.startswith("env://") and arguments.get("store") is None:
        rank = rank if rank is not None and rank >= 0 else int(os.environ["RANK"])
        size = size if size is not None and size >= 0 else int(os.environ["WORLD_SIZE"])
        host = os.environ["MASTER_ADDR"]  # of IPv6 without brackets
        method = "tcp://%s:%s" % ("[%s]" % host if ":" in host else host, os.environ["MASTER_PORT"])
        origin += ", MASTER_ADDR, MASTER_PORT"
    elif "?" in method:
        method, rank, size = _query(method, rank, size)
    if rank is None or size is None or rank < 0 or size < 1:
        return None
    if size == 1 and _private(method, arguments.get("store")):
        return None
    return {
        "framework": "torch",
        "call": "init_process_group",
        "rank": rank,
        "world_size": size,
        "place": method if arguments.get("store") is None else "store",
        "backend": str(arguments.get("backend") or ""),
        "origin": origin,
        "local": _local(method, size),
        # The script may have set it: what the process was started with does not tell that.
        "interface": os.environ.get("GLOO_SOCKET_IFNAME", "")[:64],
    }


def _private(method: str, store: Any) -> bool:
    """Return True if a world of one is meant as such and is no part of the job.

    One rank converts a checkpoint, or runs an engine that wants a group. It has a store of its own,
    or a port of its own in a job of several.
    """
    if store is not None:
        return True
    port, several = os.environ.get("MASTER_PORT"), os.environ.get("WORLD_SIZE", "1") != "1"
    return several and port is not None and not method.endswith(":%s" % port)


def _rpc(module: Any) -> None:
    rpc.hook(module, read_declaration)


def _local(method: str, size: int) -> bool:
    """Return True if every member is known to run on this host: torchrun says so, or the address
    does."""
    started_here = os.environ.get("LOCAL_WORLD_SIZE", "")
    if started_here == str(size):
        return True
    is_whole_job_ours = os.environ.get("ALLABOARD_GATE") == "all"
    if started_here.isdigit() and int(started_here) < size and not is_whole_job_ours:
        return False  # another launcher starts the others, which nobody of us may see, though on this host
    return method.startswith(("tcp://127.", "tcp://localhost:", "tcp://[::1]:"))


def _query(method: str, rank: int, size: int) -> tuple[str, int, int]:
    """tcp://host:port?rank=0&world_size=4, as torch.distributed.rendezvous reads it."""
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(method)
    query = parse_qs(parts.query)
    rank = int(query["rank"][0]) if "rank" in query else rank
    size = int(query["world_size"][0]) if "world_size" in query else size
    return parts._replace(query="").geturl(), rank, size


def at_end() -> None:
    """Gives gloo's threads a moment with the interpreter.

    After its last collective such a thread lets go of what it holds of Python (``~ThreadLocalState``). One
    that still waits for the interpreter when that goes down is unwound through C++ destructors instead:
    ``terminate called without an active exception``, SIGABRT, though all was trained. To sleep is to let
    go of the interpreter; nothing is waited for.
    """
    if member.here.round and "torch.distributed.distributed_c10d" in sys.modules:
        time.sleep(LET_GO)


def _optimizer(module: Any) -> None:
    count = Steps()
    phases.optimizer(module, count.add_optimizer)
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(count.hook)
    elif hasattr(getattr(module, "Optimizer", None), first.AFTER_STEP):
        first.steps(module.Optimizer, count)
    else:
        member.here.lacks("torch.optim", "register_optimizer_step_post_hook")


def _modules(module: Any) -> None:
    phases.modules(module)
    tensors.hook(module)


before_import = visible_devices.restore_all

MODULES = {
    "torch.distributed.distributed_c10d": _distributed,
    "torch.autograd.graph": _graph,
    "torch.autograd": _autograd,
    "torch.distributed.algorithms.join": _join,
    "torch.distributed.rpc": _rpc,
    "torch.nn.parallel.distributed": _model,
    "torch.distributed._functional_collectives": _functional,
    "torch._dynamo.output_graph": compiled.hook,
    "torch._dynamo.trace_rules": compiled.left_alone,
    "torch.cuda.graphs": cuda_graphs.hook,
    "torch.optim.optimizer": _optimizer,
    "torch.utils.data.dataloader": loader,
    "accelerate.state": accelerate.state,
    **phases.MODULES,
    "torch.nn.modules.module": _modules,
}
