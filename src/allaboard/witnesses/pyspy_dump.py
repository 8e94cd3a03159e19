"""What `py-spy dump` printed, as text or with `--json`; one process a file, or several in a row."""

from __future__ import annotations

import re
import sys

import msgspec

from allaboard.contracts import Witness
from allaboard.evidence.parse import parse_pyspy
from allaboard.facts import Exhibit, Frame, Glimpse, Place, Stack, Testimony

_PROCESS = re.compile(r"^Process (\d+): ?(.*)$", re.MULTILINE)
_THREAD = re.compile(r'^Thread (\w+) \([^)\n]*\)(?:: "([^"\n]*)")?', re.MULTILINE)
_FRAME = re.compile(r"^    (\S.{0,300}?) \((.{1,500}?)(?::(\d+))?\)$", re.MULTILINE)
_INSTALLED = ("torch", "tensorflow", "jax", "keras", "tf_keras", "numpy", "filelock", "portalocker")


class _Thread(msgspec.Struct):
    pid: int
    frames: list[msgspec.Raw]


def hears(exhibit: Exhibit) -> Testimony | None:
    if exhibit.data.lstrip()[:1] == b"[":
        return _json(exhibit)
    text = exhibit.text
    heads = list(_PROCESS.finditer(text))
    if not heads or "\nThread " not in text:
        return None
    glimpses = []
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        part = text[head.end() : following.start() if following is not None else len(text)]
        frames = _main(part, head[1])
        place = Place(file=exhibit.name, line=text.count("\n", 0, head.start()) + 1)
        rank = exhibit.rank if len(heads) == 1 else -1
        glimpses.append(_glimpse(place, rank, int(head[1][-9:]), frames))
    return Testimony(glimpses=tuple(glimpses))


def _json(exhibit: Exhibit) -> Testimony | None:
    try:
        threads = msgspec.json.decode(exhibit.data, type=list[_Thread])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not threads:
        return None
    pid = threads[0].pid
    frames = parse_pyspy(exhibit.data, pid)
    return Testimony(glimpses=(_glimpse(Place(file=exhibit.name), exhibit.rank, pid, frames),))


def _glimpse(place: Place, rank: int, pid: int, frames: tuple[Frame, ...]) -> Glimpse:
    stack = Stack(frames=frames, taken_at=0.0, by="py-spy") if frames else None
    return Glimpse(origin=place, rank=rank, pid=pid, stack=stack)


def _main(part: str, pid: str) -> tuple[Frame, ...]:
    threads = list(_THREAD.finditer(part))
    if not threads:
        return ()
    chosen = next((t for t in threads if t[2] == "MainThread" or t[1] == pid), threads[-1])
    after = [t.start() for t in threads if t.start() > chosen.start()]
    block = part[chosen.end() : after[0] if after else len(part)]
    return tuple(
        Frame(_whole(m[2]), int((m[3] or "0")[:9]), m[1].rpartition(".")[2])
        for m in _FRAME.finditer(block)
    )


def _whole(file: str) -> str:
    """py-spy leaves out the folder that Python found a file in; the tables of places know it."""
    top = file.partition("/")[0].removesuffix(".py")
    if file.startswith(("/", "<")):
        return file
    if top in _INSTALLED:
        return f"/site-packages/{file}"
    return f"/lib/python3/{file}" if top in sys.stdlib_module_names else file


WITNESS = Witness(hears=hears)
