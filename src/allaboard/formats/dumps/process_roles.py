"""Roles of Python processes that belong to a job and are none of its ranks, from their frames or command.
Pure.

The functions are those of CPython 3.9 to 3.14, PyTorch 2.13, accelerate 1.x, DeepSpeed 0.1x, Horovod 0.28 and
Ray 2.x.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import PurePosixPath

from allaboard.facts import Frame

DATA_LOADER_WORKER = "DataLoader worker"
POOL_WORKERS = ("worker of a multiprocessing pool", "worker of a process pool executor")
"""Roles that ranks may have too, where the program runs them in a pool: then they wait for each other."""
WAITING_PARENT = "parent of the processes that it waits for"
"""Role that a rank may have too, where it waits for a process that it started."""
TORCHRUN = "torchrun's agent"
"""Role of torchrun itself, which is no rank."""
_ACCELERATE = "accelerate launch"
_DEEPSPEED, _HOROVOD = "DeepSpeed's launcher", "horovodrun"
_RESOURCE_TRACKER, _FORK_SERVER = (
    "multiprocessing's resource tracker",
    "multiprocessing's fork server",
)
_RAY = "Ray's own process"
_TABLE: tuple[tuple[str, str, str], ...] = (
    # end of the file's path, function (regular expression), what it is
    ("torch/utils/data/_utils/worker.py", "_worker_loop", DATA_LOADER_WORKER),
    ("multiprocessing/pool.py", "worker", POOL_WORKERS[0]),
    ("concurrent/futures/process.py", "_process_worker", POOL_WORKERS[1]),
    ("multiprocessing/(resource|semaphore)_tracker.py", "main", _RESOURCE_TRACKER),
    ("multiprocessing/forkserver.py", "main", _FORK_SERVER),
    ("multiprocessing/managers.py", "serve_forever|_run_server", "multiprocessing's manager"),
    ("torch/_inductor/compile_worker/__main__.py", ".*", "compile worker of torch.compile"),
    ("accelerate/commands/launch.py", ".*", _ACCELERATE),
    ("torch/distributed/elastic/agent/server/.*", ".*", TORCHRUN),
    ("torch/distributed/launcher/api.py", "launch_agent", TORCHRUN),
    ("torch/multiprocessing/spawn.py", "join|start_processes|spawn", WAITING_PARENT),
    ("multiprocessing/process.py", "join", WAITING_PARENT),
    ("deepspeed/launcher/(runner|launch).py", ".*", _DEEPSPEED),
    ("horovod/runner/(launch|gloo_run|mpi_run).py", ".*", _HOROVOD),
    ("ray/worker.py", "_get_next_task_from_local_scheduler", _RAY),
    (r"ray/dashboard/.*|ray/_private/(log_)?monitor.py", ".*", _RAY),
    (r"ray/train/(v2/api/data_parallel_trainer|base_trainer).py", "fit", "Ray Train's driver"),
    (r"ray/tune/tuner.py", "fit", "Ray Tune's driver"),
)
_COMPILED = tuple(
    (re.compile(f"(?:^|/)(?:{f})$"), re.compile(n), process_role) for f, n, process_role in _TABLE
)
_CHILD_FILES = (
    re.compile(r"(?:^|/)multiprocessing/process\.py$"),
    re.compile(r"(?:^|/)multiprocessing/forkserver\.py$"),
)
_PROGRAMS = {
    "torchrun": TORCHRUN,
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "accelerate": _ACCELERATE,
    "accelerate-launch": _ACCELERATE,
    "accelerate.commands.launch": _ACCELERATE,
    "deepspeed": _DEEPSPEED,
    "deepspeed.launcher.runner": _DEEPSPEED,
    "deepspeed.launcher.launch": _DEEPSPEED,
    "horovodrun": _HOROVOD,
    "mpirun": "mpirun",
    "mpiexec": "mpiexec",
    "srun": "srun",
    "allaboard": "allaboard itself",
}
_INLINE = (
    (re.compile(r"multiprocessing\.(?:resource|semaphore)_tracker import main"), _RESOURCE_TRACKER),
    (re.compile(r"multiprocessing\.forkserver import main"), _FORK_SERVER),
)
_RAY_TITLE = re.compile(
    r"ray::(?:IDLE|TrainController|PlacementGroupCleaner|SynchronizationActor|_AutoscalingCoordinatorActor"
    r"|TunerInternal|_StatsActor|DashboardAgent|RuntimeEnvAgent)\b"
)
"""Titles that Ray gives its processes that run nothing of the program's; an actor has its class's name."""
_VALUED_OPTIONS = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python itself that take a word."""


def process_role(command: str, frames: Sequence[Frame]) -> str:
    """Return the role by the frames of the main thread (innermost first), else by the command line.

    It is "" for a process that may be a rank.
    """
    if role_from_frames := _role_from_frames(frames):
        return role_from_frames
    for pattern, name in _INLINE:
        # A process that was forked by the server has the server's command line.
        if pattern.search(command) and not any(map(is_child_entry, frames)):
            return name
    return _RAY if _RAY_TITLE.match(command) else _PROGRAMS.get(program_name(command), "")


def _role_from_frames(frames: Sequence[Frame]) -> str:
    for frame, caller in zip_longest(frames, frames[1:]):
        for file, name, role in _COMPILED:
            if not (name.fullmatch(frame.function) and file.search(frame.file)):
                continue
            if (
                role is not WAITING_PARENT
                or caller is None
                or caller.is_user
                or file.search(caller.file)
            ):
                return role  # a DataLoader joins its workers, too
        if is_child_entry(frame):
            break  # what is further out is of the process that forked it
    return ""


def is_child_entry(frame: Frame) -> bool:
    """Return True if a child begins at this frame, in the code of multiprocessing."""
    process, server = _CHILD_FILES
    return bool(
        (frame.function == "_bootstrap" and process.search(frame.file))
        or (frame.function == "_serve_one" and server.search(frame.file))
    )


def program_name(command: str) -> str:
    """Return the script or module that Python runs, without its folder; the program itself if that is not
    Python.

    It is "" if it is not known, as for code on the command line.
    """
    words = command.split()
    if not words:
        return ""
    executable = PurePosixPath(words[0]).name
    if not re.fullmatch(r"(?:python|pypy)[\d.]*t?", executable):
        return executable
    position = 1
    while position < len(words) and words[position].startswith("-"):
        if words[position].endswith("m") and not words[position].startswith("--"):
            return words[position + 1] if position + 1 < len(words) else ""
        if words[position] == "-" or (
            words[position].endswith("c") and not words[position].startswith("--")
        ):
            return ""
        position += 2 if words[position] in _VALUED_OPTIONS else 1
    return PurePosixPath(words[position]).name if position < len(words) else ""
