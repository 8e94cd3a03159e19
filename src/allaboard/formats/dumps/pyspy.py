"""What `py-spy dump` prints, as text and as JSON, of one process or of many one after the other. Pure."""

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
from allaboard.formats.dumps.stack_frames import parse_pyspy

MAX_PROCESSES = 4096
"""Processes of one file."""
_PROCESS = re.compile(r"^Process (\d{1,9}): ?(.*)$", re.MULTILINE)
_BODY = re.compile(r"^(?:Python v\d|Thread \w+ \()", re.MULTILINE)
_PARENT = re.compile(r"^Parent Process (\d{1,9}):", re.MULTILINE)
_THREAD = re.compile(r'^Thread (\w+) \([^)\n]*\)(?:: "([^"\n]*)")?', re.MULTILINE)
_FRAME = re.compile(r"    (\S.{0,300}?) \((.{1,500}?):(\d{1,9})\)$")
"""Of Python: one of native code (``--native``) has no line, or is in a file of another language."""
_LIST, _NEXT = re.compile(r"^[ \t]*\[", re.MULTILINE), re.compile(r"\s*\[")
_VALUE = re.compile(r" {12}(\w{1,100}): (.{0,100})")
_NATIVE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|h|hpp|rs|S|so[.\d]*|a|dylib)$")
_INSTALLED = (
    "torch", "tensorflow", "jax", "jaxlib", "flax", "orbax", "keras", "tf_keras", "numpy", "pandas",
    "filelock", "portalocker", "accelerate", "deepspeed", "horovod", "ray", "lightning", "transformers",
    "pytorch_lightning", "datasets", "torchvision", "torchaudio", "torchdata", "fsspec", "s3fs", "wandb",
    "webdataset", "requests", "urllib3", "botocore", "megatron", "apex", "mpi4py",
)  # fmt: skip
_SCRIPTS = ("torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun")


class ProcessDump(NamedTuple):
    """One process: its ``pid``, its command line and its parent where they are told, the main thread's
    frames, innermost first, and the rank that the values of its variables tell, -1 for none. ``begin``:
    where it begins in the text."""

    pid: int
    begin: int
    frames: tuple[Frame, ...]
    command: str = ""
    parent: int = 0
    rank: int = -1


def parse_text_dumps(text: str) -> list[ProcessDump]:
    """Every process in it, in order; [] where it is no such dump."""
    heads = list(_PROCESS.finditer(text))[:MAX_PROCESSES]
    if not heads or "\nThread " not in text:
        return []
    ends = [*(h.start() for h in heads[1:]), len(text)]
    parts = [(h, text[h.end() : e]) for h, e in zip(heads, ends, strict=True)]
    return [_dumped(head, part) for head, part in parts if _BODY.search(part)]


def _dumped(head: re.Match[str], part: str) -> ProcessDump:
    parent = _PARENT.search(part)
    frames, values = _main(part, head[1])
    return ProcessDump(
        pid=int(head[1]),
        begin=head.start(),
        frames=frames,
        command=head[2].strip(),
        parent=int(parent[1]) if parent is not None else 0,
        rank=rank_from_locals(values),
    )


def _main(part: str, pid: str) -> tuple[tuple[Frame, ...], list[tuple[str, str, str]]]:
    """The main thread's frames, and the variables (``--locals``) of those of the user's own code."""
    threads = list(_THREAD.finditer(part))
    if not threads:
        return (), []
    chosen = next((t for t in threads if t[2] == "MainThread" or t[1] == pid), threads[-1])
    after = [t.start() for t in threads if t.start() > chosen.start()]
    frames: list[Frame] = []
    values: list[tuple[str, str, str]] = []
    begun = False  # further out are the variables of the process that forked it
    for line in part[chosen.end() : after[0] if after else len(part)].splitlines():
        if (found := _FRAME.match(line)) is not None:
            if not _NATIVE.search(found[2]):
                frames.append(Frame(_whole(found[2]), int(found[3]), found[1].rpartition(".")[2]))
                begun = begun or is_child_entry(frames[-1])
        elif frames and not begun and _tells(frames[-1]) and (value := _VALUE.match(line)):
            values.append((frames[-1].file, value[1], value[2]))
    return tuple(frames), values


def _tells(frame: Frame) -> bool:
    """Whether a variable of this function that is called a rank is the rank in the whole job."""
    return frame.is_user or frame.file.endswith("torch/multiprocessing/spawn.py")


def _whole(file: str) -> str:
    """py-spy leaves out the folder that Python found a file in; the tables of places know it."""
    top = file.partition("/")[0].removesuffix(".py")
    if file.startswith(("/", "<")):
        return file
    if file in _SCRIPTS:
        return f"/bin/{file}"
    if top in _INSTALLED:
        return f"/site-packages/{file}"
    return f"/lib/python3/{file}" if top in sys.stdlib_module_names else file


def parse_json_dumps(text: str) -> list[ProcessDump]:
    """As `of_text`, of what ``--json`` prints, of one list of threads or of several."""
    if '"frames"' not in text or '"pid"' not in text:
        return []
    found: list[ProcessDump] = []
    for begin, threads in _lists(text):
        by_pid: dict[int, list[Any]] = {}
        for thread in threads:
            if isinstance(thread, dict) and isinstance(thread.get("pid"), int):
                by_pid.setdefault(thread["pid"], []).append(thread)
        for pid, own in by_pid.items():
            frames = parse_pyspy(msgspec.json.encode(own), pid)
            kept = tuple(f for f in frames if f.line and not _NATIVE.search(f.file))
            found.append(ProcessDump(pid, begin, kept, rank=rank_from_locals(_values(own))))
    return found[:MAX_PROCESSES]


def _lists(text: str) -> Iterator[tuple[int, list[Any]]]:
    decoder, at = json.JSONDecoder(), 0
    for _ in range(MAX_PROCESSES):
        head = _NEXT.match(text, at) or _LIST.search(text, at)
        if head is None:
            return
        try:
            threads, at = decoder.raw_decode(text, head.end() - 1)
        except (ValueError, RecursionError):
            at = head.end()
            continue
        yield head.start(), threads


def _values(threads: list[Any]) -> Iterator[tuple[str, str, str]]:
    """The variables of the user's own functions, where ``--locals`` asked for them."""
    for thread in threads:
        if thread.get("thread_name") != "MainThread":
            continue
        for one in thread.get("frames") or ():
            frame = Frame(str(one.get("filename", "")), 1, str(one.get("name", "")))
            if is_child_entry(frame):
                break
            for local in (one.get("locals") or ()) if _tells(frame) else ():
                yield frame.file, str(local.get("name", "")), str(local.get("repr", ""))
