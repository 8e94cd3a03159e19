"""A process's place in its job, by the arguments of its functions (``py-spy dump --locals``) and of its
command line. Pure.

Programs that start their ranks themselves (``mp.spawn``, a shell's loop) pass rank and world size as
arguments, and no environment has them. The answer names the variable that would state the same in an
environment.

The functions are those of PyTorch 1.8 to 2.13 and JAX 0.4 to 0.10; the flags are those of TensorFlow 1's
guide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from allaboard.facts import Frame
from allaboard.formats.dumps.process_roles import is_child_entry
from allaboard.formats.dumps.rank_hints import rank_from_command, rank_from_locals
from allaboard.formats.dumps.thread_dumps.pyspy import has_job_rank

_NUMBER = re.compile(r"-?\d{1,7}$")
_SIZE_NAMES = (
    "world_size",
    "worldsize",
    "world",
    "nprocs",
    "n_procs",
    "num_processes",
    "num_ranks",
)
_INIT_ARGUMENTS: tuple[tuple[re.Pattern[str], re.Pattern[str], Mapping[str, str]], ...] = tuple(
    (re.compile(f"(?:^|/)(?:{file})$"), re.compile(f"(?:{function})$"), names)
    for file, function, names in (
        (
            r"torch/distributed/(?:distributed_c10d|rendezvous)\.py",
            "init_process_group|_create_c10d_store|_tcp_rendezvous_handler|_env_rendezvous_handler"
            "|_file_rendezvous_handler|_rendezvous_helper",
            {
                "rank": "RANK",
                "world_size": "WORLD_SIZE",
                "hostname": "MASTER_ADDR",
                "port": "MASTER_PORT",
                "master_addr": "MASTER_ADDR",
                "master_port": "MASTER_PORT",
                "init_method": "INIT_METHOD",
            },
        ),
        (
            r"jax/_src/distributed\.py",
            "initialize",
            {
                "process_id": "JAX_PROCESS_ID",
                "num_processes": "JAX_NUM_PROCESSES",
                "coordinator_address": "JAX_COORDINATOR_ADDRESS",
            },
        ),
    )
)
"""Files and functions in which a framework joins, and the variables that their arguments stand for."""
_TASK_FLAG = re.compile(r"(?<!\S)--?(?P<name>\w{1,30}?)_hosts[= ](?P<hosts>[\w.,:\[\]-]+)")
_TASKS_FLAG = re.compile(
    r"(?<!\S)--?(?P<name>ps|workers?|chief|master)(?:_addresses|_addrs|_list)?[= ]"
    r"(?P<hosts>[\w.\[\]-]{1,250}:\d{1,5}(?:,[\w.:\[\]-]+)?)(?!\S)"
)
"""As some programs name their own flags. A number of tasks (``--workers 4``) is no address."""
_JOB_FLAG = re.compile(r"(?<!\S)--?(?:job_name|job_type|task_type|job|role)[= ](\w+)(?!\S)")
_INDEX_FLAG = re.compile(r"(?<!\S)--?(?:task_index|task_id|task|index)[= ](\d{1,5})(?!\S)")


_JOB_OF_FLAG = {"workers": "worker"}


class FrameLocals(NamedTuple):
    """A frame with its variables."""

    frame: Frame
    """The frame."""
    values: tuple[tuple[str, str], ...] = ()
    """Names of its variables, and their values as py-spy prints them."""


class _Local(msgspec.Struct):
    name: str = ""
    repr: str | None = None


class _Frame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    locals: list[_Local] | None = None


class _Thread(msgspec.Struct):
    frames: list[_Frame]
    thread_name: str | None = None
    os_thread_id: int | None = None


def parse_frames_with_locals(text: bytes, pid: int) -> tuple[FrameLocals, ...]:
    """Return the main thread's frames in the output of ``py-spy dump --json --locals``, innermost first."""
    try:
        threads = msgspec.json.decode(text, type=list[_Thread])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    main = [t for t in threads if t.os_thread_id == pid or t.thread_name == "MainThread"]
    return tuple(
        FrameLocals(
            Frame(f.filename, f.line, f.name.rpartition(".")[2]),
            tuple((v.name, v.repr or "") for v in f.locals or ()),
        )
        for thread in (main or threads[-1:])[:1]
        for f in thread.frames
    )


def stated_by_init(frames: Sequence[FrameLocals]) -> dict[str, str]:
    """Return what the arguments of the framework's init state. They count before the environment."""
    variables: dict[str, str] = {}
    for frame, values in frames:
        names = next(
            (n for f, g, n in _INIT_ARGUMENTS if g.match(frame.function) and f.search(frame.file)),
            {},
        )
        for name, text in values:
            value = text.strip("\"'")
            is_stated = name in names and value not in ("None", "-1", "") and "<" not in value
            if is_stated and (name not in ("rank", "world_size") or _NUMBER.match(value)):
                variables.setdefault(names[name], value)
    return variables


def stated_by_program(frames: Sequence[FrameLocals], command: Sequence[str]) -> dict[str, str]:
    """Return what the variables of the user's own functions state, else the command line. A variable of the
    program is the rank itself; a flag may be about something else."""
    values: list[tuple[str, str, str]] = []
    for frame, frame_values in frames:
        if is_child_entry(frame):
            break
        if has_job_rank(frame):
            values += [(frame.file, name, text) for name, text in frame_values]
    rank = rank_from_locals(values)
    sizes = {text for _, name, text in values if name in _SIZE_NAMES and _NUMBER.match(text)}
    line = " ".join(command)
    if rank < 0:
        rank = rank_from_command(line)
    variables = {"RANK": str(rank)} if rank >= 0 else {}
    if rank >= 0 and len(sizes) == 1 and rank < int(size := sizes.pop()):
        variables["WORLD_SIZE"] = size
    return variables


def task_by_command(command: Sequence[str]) -> str:
    """Return the TF_CONFIG that flags as those of TensorFlow 1's guide mean (``--ps_hosts=A:1,B:2
    --job_name=ps --task_index=0``); "" without them."""
    line = " ".join(command)
    cluster = {m["name"]: m["hosts"].split(",") for m in _TASK_FLAG.finditer(line)} or {
        _JOB_OF_FLAG.get(m["name"], m["name"]): m["hosts"].split(",")
        for m in _TASKS_FLAG.finditer(line)
    }
    job, index = _JOB_FLAG.search(line), _INDEX_FLAG.search(line)
    if not cluster or job is None or job[1] not in cluster:
        return ""
    task = {"type": job[1], "index": int(index[1]) if index is not None else 0}
    return json.dumps({"cluster": cluster, "task": task})
