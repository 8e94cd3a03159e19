"""The torchruns that one shell script starts beside each other on its host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.check.concurrent_commands import together
from allaboard.check.sequential_start import View
from allaboard.configuration.spec import merge
from allaboard.facts import ClusterSpec, Origin, PartialSpec, Pasted, Problem, Value, whole
from allaboard.facts.address import parse
from allaboard.formats.cli_flags import words_after_program
from allaboard.formats.shell.script import Process, Script

_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_OWN = re.compile(r"(?:python[0-9.]*|torchrun|nohup|time|exec|env|\w+=.*)\Z")
_PORT = "29500"
_OPEN = ("nnodes", "rdzv_endpoint", "master_addr", "master_port", "rdzv_backend", "rdzv_id")


class _Launcher(NamedTuple):
    """One torchrun: at what it meets the others of its job, and of how many nodes that is."""

    start: Origin
    part: PartialSpec
    place: str
    port: str
    nodes: int
    static: bool


def one_port(script: Script, view: View) -> Iterator[Problem]:
    """Jobs of one node each whose stores are to listen on the same port."""
    for group in together(script):
        first: dict[str, _Launcher] = {}
        for launcher in _launchers(group, view):
            if launcher.nodes != 1 or not launcher.static:
                continue
            if launcher.port and not 0 < (whole(launcher.port) or 0) < 65536:
                continue  # any free one, or told by another rule
            other = first.setdefault(launcher.port or _PORT, launcher)
            if other is not launcher:
                yield _problem(other, launcher)


def one_job(script: Script, file: str, view: View) -> Iterator[Pasted]:
    """The nodes of each job of several that all are started here."""
    for group in together(script):
        jobs: dict[tuple[str, str], list[tuple[str, ClusterSpec]]] = {}
        for launcher in _launchers(group, view):
            if launcher.nodes < 2 or not launcher.place:
                continue
            named = launcher.part.values.get("rdzv_id", Value("")).text
            subject = f"{file}:{launcher.start.line}"
            jobs.setdefault((launcher.place, named), []).append((subject, merge([launcher.part])))
        yield from (Pasted(specs=tuple(job)) for job in jobs.values() if len(job) > 1)


def _launchers(group: list[Process], view: View) -> Iterator[_Launcher]:
    for process in group:
        if not _torchrun(process):
            continue
        part = view(process).part("torchrun")
        if part is None or "standalone" in part.values:
            continue
        told = part.values
        if any(f in told and not told[f].text for f in _OPEN):
            continue  # given, but to what only a run can tell
        most = Value(told["nnodes"].text.rpartition(":")[2]).integer if "nnodes" in told else 1
        if most is None:
            continue
        backend = told["rdzv_backend"].text if "rdzv_backend" in told else "static"
        endpoint = told.get("rdzv_endpoint")
        place = endpoint.text if endpoint is not None else ""
        port = parse(place).port if place else told.get("master_port", Value("")).text.strip()
        if not place and "master_addr" in told:
            place = f"{told['master_addr'].text}:{port or _PORT}"
        start = process.command[0].origin
        yield _Launcher(start, part, place, port, most, backend == "static")


def _torchrun(process: Process) -> bool:
    """Whether the command itself is torchrun, not one that is told of it."""
    words = words_after_program(process.command, ("torchrun",), _MODULES)
    if words is None:
        return False
    before = process.command[: len(process.command) - len(words)]
    return all(
        w.text.startswith("-") or _OWN.match(w.text.rpartition("/")[2]) or w.text in _MODULES
        for w in before
    )


def _problem(one: _Launcher, other: _Launcher) -> Problem:
    told = other.part.values
    given = told.get("master_port") or told.get("rdzv_endpoint")
    name = f"--master-port={int(other.port or _PORT) % 65535 + 1}"
    both = one.port and other.port
    where = (
        f"the torchrun of line {one.start.line}"
        if one.start.line != other.start.line
        else "the round before"
    )
    return Problem(
        kind="one_port",
        said=f"torchrun listens on port {other.port}, on which {where} listens at the same time"
        if both
        else f"without --master-port an older torchrun listens on {_PORT}, as {where} does at the same "
        "time",
        observed=f"{given.origin.flag} {given.text}" if given is not None else "no --master-port",
        correction=f"torchrun {name} …   # another one for each; or --standalone, which takes a free one",
        origin=given.origin if given is not None else other.start,
    )
