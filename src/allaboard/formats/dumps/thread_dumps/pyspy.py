"""Output of `py-spy dump`, as text and as JSON, of one process or of several in a row. Pure."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from allaboard.facts import Frame
from allaboard.formats.dumps.process_roles import is_child_entry
from allaboard.formats.dumps.rank_hints import rank_from_locals
from allaboard.formats.dumps.thread_dumps.program_thread import program_frames
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_pyspy

MAX_PROCESSES = 4096
"""Processes that are read of one file."""
_PROCESS = re.compile(r"^Process (\d{1,9}): ?(.*)$", re.MULTILINE)
_RAY_HEAD = re.compile(r"^Stack dump for \S{1,64} +(\d{1,9})(?: +\S{1,64}){8} +(.*)$", re.MULTILINE)
"""Before each dump of `ray stack`: the line of `ps aux`. With py-spy 0.1 it alone names the process."""
_BODY = re.compile(r"^(?:Python v\d|Thread \w+ \()", re.MULTILINE)
_PARENT = re.compile(r"^Parent Process (\d{1,9}):", re.MULTILINE)
_THREAD = re.compile(r'^Thread (\w+) \([^)\n]*\)(?:: "([^"\n]*)")?', re.MULTILINE)
_THREAD_HEAD = re.compile(
    r'^Thread (0x[0-9A-Fa-f]{1,16}|\d{1,9}) \((?:idle|active)(?:\+gil)?\)(?:: "([^"\n]*)")?$',
    re.MULTILINE,
)
_FRAME = re.compile(r"(?: {4}|\t ?)(\S.{0,300}?) \((.{1,500}?):(\d{1,9})\)$")
"""Matches a Python frame: one of native code (``--native``) has no line, or is in a file of another language.
"""
_FIRST_LIST, _NEXT_LIST = re.compile(r"^[ \t]*\[", re.MULTILINE), re.compile(r"\s*\[")
_VALUE = re.compile(r" {12}(\w{1,100}): (.{0,100})")
_NATIVE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|h|hpp|rs|S|so[.\d]*|a|dylib)$")
_INSTALLED = (
    "torch", "tensorflow", "jax", "jaxlib", "flax", "orbax", "keras", "tf_keras", "numpy", "pandas",
    "filelock", "portalocker", "accelerate", "deepspeed", "horovod", "ray", "lightning", "transformers",
    "pytorch_lightning", "datasets", "torchvision", "torchaudio", "torchdata", "fsspec", "s3fs", "wandb",
    "webdataset", "requests", "urllib3", "botocore", "megatron", "apex", "mpi4py", "torch_xla",
    "torchmetrics", "lightning_fabric", "lightning_utilities", "trl", "peft", "timm", "composer",
    "fairscale", "colossalai", "ignite", "xformers", "flash_attn", "vllm", "torchao", "torchtune",
    "bitsandbytes", "huggingface_hub", "tqdm", "transformer_engine", "diffusers", "optax",
)  # fmt: skip
_LAUNCHER_SCRIPTS = ("torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun")


class ProcessDump(NamedTuple):
    """The dump of one process."""

    pid: int
    """Its process id."""
    begin: int
    """Position of the dump in the text."""
    frames: tuple[Frame, ...]
    """Frames of the main thread, innermost first."""
    command: str = ""
    """Its command line, "" if the dump does not have it."""
    parent: int = 0
    """Pid of its parent, 0 if the dump does not have it."""
    rank: int = -1
    """Rank by the values of its variables, -1 if they tell none."""


def parse_text_dumps(text: str) -> list[ProcessDump]:
    """Return every process of a text dump, in order; [] if it is no such dump."""
    heads = list(_PROCESS.finditer(text))[:MAX_PROCESSES]
    heads = heads or list(_RAY_HEAD.finditer(text))[:MAX_PROCESSES]
    if not heads:
        return _headless_dumps(text)
    if "\nThread " not in text:
        return []
    ends = [*(h.start() for h in heads[1:]), len(text)]
    parts = [(h, text[h.end() : e]) for h, e in zip(heads, ends, strict=True)]
    return [_process_dump(head, part) for head, part in parts if _BODY.search(part)]


def _headless_dumps(text: str) -> list[ProcessDump]:
    """Return the dumps whose first lines were left out; [] if there are none.

    py-spy writes one main thread for each process. Threads above the first belong to it, and those below one
    to that one. The number of a thread is the pid only in the main thread's decimal form (Linux).
    """
    heads = list(_THREAD_HEAD.finditer(text))[:MAX_PROCESSES]
    main_threads = [h for h in heads if h[2] == "MainThread"] or heads[:1]
    if not main_threads:
        return []
    begins = [heads[0].start(), *(h.start() for h in main_threads[1:])]
    dumps = []
    for main_thread, begin, end in zip(main_threads, begins, [*begins[1:], len(text)], strict=True):
        pid = int(main_thread[1]) if main_thread[1].isdecimal() else 0
        frames, values = _main_thread(text[begin:end], main_thread[1])
        if frames:
            dumps.append(ProcessDump(pid, begin, frames, rank=rank_from_locals(values)))
    return dumps


def _process_dump(head: re.Match[str], part: str) -> ProcessDump:
    parent = _PARENT.search(part)
    frames, values = _main_thread(part, head[1])
    return ProcessDump(
        pid=int(head[1]),
        begin=head.start(),
        frames=frames,
        command=head[2].strip(),
        parent=int(parent[1]) if parent is not None else 0,
        rank=rank_from_locals(values),
    )


def _main_thread(part: str, pid: str) -> tuple[tuple[Frame, ...], list[tuple[str, str, str]]]:
    """Return the main thread's frames, and the variables (``--locals``) of those in the user's own code."""
    threads = list(_THREAD.finditer(part))
    if not threads:
        return (), []
    chosen = next((t for t in threads if t[2] == "MainThread" or t[1] == pid), threads[-1])
    ends = [*(t.start() for t in threads[1:]), len(part)]
    blocks = {t: part[t.end() : end] for t, end in zip(threads, ends, strict=True)}
    frames, values = _read_block(blocks[chosen])
    other_threads = (
        _read_block(block)[0] for thread, block in blocks.items() if thread is not chosen
    )
    return program_frames(frames, other_threads), values


def _read_block(block: str) -> tuple[tuple[Frame, ...], list[tuple[str, str, str]]]:
    """Return the frames of one thread, and the variables of those in the user's own code."""
    frames: list[Frame] = []
    values: list[tuple[str, str, str]] = []
    in_parent_process = False  # further out are the variables of the process that forked it
    for line in block.splitlines():
        if (match := _FRAME.match(line)) is not None:
            if not _NATIVE.search(match[2]):
                frames.append(
                    Frame(_full_path(match[2]), int(match[3]), match[1].rpartition(".")[2])
                )
                in_parent_process = in_parent_process or is_child_entry(frames[-1])
        elif (
            frames
            and not in_parent_process
            and has_job_rank(frames[-1])
            and (value := _VALUE.match(line))
        ):
            values.append((frames[-1].file, value[1], value[2]))
    return tuple(frames), values


def has_job_rank(frame: Frame) -> bool:
    """Return True if a variable of this function that is called a rank is the rank in the whole job."""
    # In the parent, start_processes counts its children in a variable of the same name.
    is_spawned = frame.function == "_wrap" and frame.file.endswith("torch/multiprocessing/spawn.py")
    return frame.is_user or is_spawned


def _full_path(file: str) -> str:
    """Return the path with the folder that py-spy leaves out, as the tables of functions need it."""
    top = file.partition("/")[0].removesuffix(".py")
    if file.startswith(("/", "<")):
        return file
    if file in _LAUNCHER_SCRIPTS:
        return f"/bin/{file}"
    if top in _INSTALLED and "/" in file:  # without a folder it is a script of the user's
        return f"/site-packages/{file}"
    return f"/lib/python3/{file}" if top in sys.stdlib_module_names else file


def parse_json_dumps(text: str) -> list[ProcessDump]:
    """Return every process of a ``--json`` dump, of one list of threads or of several in a row."""
    if '"frames"' not in text or '"pid"' not in text:
        return []
    dumps: list[ProcessDump] = []
    for begin, threads in _thread_lists(text):
        by_pid: dict[int, list[Any]] = {}
        for thread in threads:
            if isinstance(thread, dict) and isinstance(thread.get("pid"), int):
                by_pid.setdefault(thread["pid"], []).append(thread)
        for pid, process_threads in by_pid.items():
            frames = parse_pyspy(msgspec.json.encode(process_threads), pid)
            python_frames = tuple(f for f in frames if f.line and not _NATIVE.search(f.file))
            dumps.append(
                ProcessDump(
                    pid, begin, python_frames, rank=rank_from_locals(_user_locals(process_threads))
                )
            )
    return dumps[:MAX_PROCESSES]


def _thread_lists(text: str) -> Iterator[tuple[int, list[Any]]]:
    decoder, position = json.JSONDecoder(), 0
    for _ in range(MAX_PROCESSES):
        head = _NEXT_LIST.match(text, position) or _FIRST_LIST.search(text, position)
        if head is None:
            return
        try:
            threads, position = decoder.raw_decode(text, head.end() - 1)
        except (ValueError, RecursionError):
            position = head.end()
            continue
        yield head.start(), threads


def _user_locals(threads: list[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the variables of the user's own functions, if ``--locals`` asked for them."""
    for thread in threads:
        if thread.get("thread_name") != "MainThread":
            continue
        for frame_data in thread.get("frames") or ():
            frame = Frame(str(frame_data.get("filename", "")), 1, str(frame_data.get("name", "")))
            if is_child_entry(frame):
                break
            for local in (frame_data.get("locals") or ()) if has_job_rank(frame) else ():
                yield frame.file, str(local.get("name", "")), str(local.get("repr", ""))
