"""What a Python process is that belongs to a job and is none of its ranks: by its code, by its command. Pure.

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
"""Such may be ranks too, where the program runs them in a pool: then they wait for each other."""
WAITING_PARENT = "parent of the processes that it waits for"
"""So may this be, where a rank waits for a process that it started."""
_TORCHRUN, _ACCELERATE = "torchrun's agent", "accelerate launch"
_DEEPSPEED, _HOROVOD = "DeepSpeed's launcher", "horovodrun"
_TRACKER, _FORKS = "multiprocessing's resource tracker", "multiprocessing's fork server"
_TABLE: tuple[tuple[str, str, str], ...] = (
    # end of the file's path, function (regular expression), what it is
    ("torch/utils/data/_utils/worker.py", "_worker_loop", DATA_LOADER_WORKER),
    ("multiprocessing/pool.py", "worker", POOL_WORKERS[0]),
    ("concurrent/futures/process.py", "_process_worker", POOL_WORKERS[1]),
    ("multiprocessing/(resource|semaphore)_tracker.py", "main", _TRACKER),
    ("multiprocessing/forkserver.py", "main", _FORKS),
    ("multiprocessing/managers.py", "serve_forever|_run_server", "multiprocessing's manager"),
    ("torch/_inductor/compile_worker/__main__.py", ".*", "compile worker of torch.compile"),
    ("accelerate/commands/launch.py", ".*", _ACCELERATE),
    ("torch/distributed/elastic/agent/server/.*", ".*", _TORCHRUN),
    ("torch/distributed/launcher/api.py", "launch_agent", _TORCHRUN),
    ("torch/multiprocessing/spawn.py", "join|start_processes|spawn", WAITING_PARENT),
    ("multiprocessing/process.py", "join", WAITING_PARENT),
    ("deepspeed/launcher/(runner|launch).py", ".*", _DEEPSPEED),
    ("horovod/runner/(launch|gloo_run|mpi_run).py", ".*", _HOROVOD),
    (r"ray/dashboard/.*|ray/_private/(log_)?monitor.py", ".*", "Ray's own process"),
)
_COMPILED = tuple(
    (re.compile(f"(?:^|/)(?:{f})$"), re.compile(n), process_role) for f, n, process_role in _TABLE
)
_BELOW = (
    re.compile(r"(?:^|/)multiprocessing/process\.py$"),
    re.compile(r"(?:^|/)multiprocessing/forkserver\.py$"),
)
_PROGRAMS = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
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
}
_INLINE = (
    (re.compile(r"multiprocessing\.(?:resource|semaphore)_tracker import main"), _TRACKER),
    (re.compile(r"multiprocessing\.forkserver import main"), _FORKS),
)
_VALUED = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python's own that take a word."""


def process_role(command: str, frames: Sequence[Frame]) -> str:
    """What it is, by the frames of its main thread (innermost first), else by its command line; "" for what
    may be a rank."""
    if found := _by_frames(frames):
        return found
    for pattern, name in _INLINE:
        # A process that was forked by the server has the server's command line.
        if pattern.search(command) and not any(map(is_child_entry, frames)):
            return name
    return _PROGRAMS.get(program_name(command), "")


def _by_frames(frames: Sequence[Frame]) -> str:
    for frame, caller in zip_longest(frames, frames[1:]):
        for file, name, found in _COMPILED:
            if not (name.fullmatch(frame.function) and file.search(frame.file)):
                continue
            if (
                found is not WAITING_PARENT
                or caller is None
                or caller.is_user
                or file.search(caller.file)
            ):
                return found  # a DataLoader joins its workers, too
        if is_child_entry(frame):
            break  # what is further out is of the process that forked it
    return ""


def is_child_entry(frame: Frame) -> bool:
    """Whether a child begins here, in the code of multiprocessing."""
    process, server = _BELOW
    return bool(
        (frame.function == "_bootstrap" and process.search(frame.file))
        or (frame.function == "_serve_one" and server.search(frame.file))
    )


def program_name(command: str) -> str:
    """The script or the module that Python runs, without its folder; the program itself where that is no
    Python; "" where it is not told, as of code on the command line."""
    words = command.split()
    if not words:
        return ""
    first = PurePosixPath(words[0]).name
    if not re.fullmatch(r"(?:python|pypy)[\d.]*t?", first):
        return first
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at].endswith("m") and not words[at].startswith("--"):
            return words[at + 1] if at + 1 < len(words) else ""
        if words[at] == "-" or (words[at].endswith("c") and not words[at].startswith("--")):
            return ""
        at += 2 if words[at] in _VALUED else 1
    return PurePosixPath(words[at]).name if at < len(words) else ""
