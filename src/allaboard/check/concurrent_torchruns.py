"""The torchruns that one shell script starts side by side on its host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.check.concurrent_commands import concurrent_processes
from allaboard.check.sequential_start import ProcessView
from allaboard.configuration.spec import merge_parts
from allaboard.facts import ClusterSpec, Origin, PartialSpec, Pasted, Problem, Value, whole_number
from allaboard.facts.address import parse_address
from allaboard.formats.cli_flags import words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES
from allaboard.formats.shell.script import Process, Script

_LAUNCH_WORD = re.compile(r"(?:python[0-9.]*|torchrun|nohup|time|exec|env|\w+=.*)\Z")
_DEFAULT_PORT = "29500"
_FIELDS_TO_KNOW = (
    "nnodes",
    "rdzv_endpoint",
    "master_addr",
    "master_port",
    "rdzv_backend",
    "rdzv_id",
)


class _Launcher(NamedTuple):
    """One torchrun, with the rendezvous that it joins."""

    start: Origin
    """Where its command begins."""
    part: PartialSpec
    meeting_place: str
    """HOST:PORT of its rendezvous; "" if none is given."""
    port: str
    """The port of its rendezvous; "" if none is given."""
    nodes: int
    """How many nodes its job has at most."""
    static: bool
    """True for the static rendezvous backend, whose store listens on the port."""


def port_conflicts(script: Script, view: ProcessView) -> Iterator[Problem]:
    """Yield a problem for each job of one node whose store would listen on the port of another such job."""
    for group in concurrent_processes(script):
        launcher_by_port: dict[str, _Launcher] = {}
        for launcher in _launchers(group, view):
            if launcher.nodes != 1 or not launcher.static:
                continue
            if launcher.port and not 0 < (whole_number(launcher.port) or 0) < 65536:
                continue  # any free one, or told by another rule
            earlier = launcher_by_port.setdefault(launcher.port or _DEFAULT_PORT, launcher)
            if earlier is not launcher:
                yield _problem(earlier, launcher)


def local_jobs(script: Script, file: str, view: ProcessView) -> Iterator[Pasted]:
    """Yield the nodes of each job of several nodes that are all started here."""
    for group in concurrent_processes(script):
        jobs: dict[tuple[str, str], list[tuple[str, ClusterSpec]]] = {}
        for launcher in _launchers(group, view):
            if launcher.nodes < 2 or not launcher.meeting_place:
                continue
            job_id = launcher.part.values.get("rdzv_id", Value("")).text
            subject = f"{file}:{launcher.start.line}"
            jobs.setdefault((launcher.meeting_place, job_id), []).append(
                (subject, merge_parts([launcher.part]))
            )
        yield from (Pasted(specs=tuple(job)) for job in jobs.values() if len(job) > 1)


def _launchers(group: list[Process], view: ProcessView) -> Iterator[_Launcher]:
    for process in group:
        if not _is_torchrun(process):
            continue
        part = view(process).part_of_source("torchrun")
        if part is None or "standalone" in part.values:
            continue
        values = part.values
        if any(f in values and not values[f].text for f in _FIELDS_TO_KNOW):
            continue  # given, but to what only a run can tell
        max_nodes = (
            Value(values["nnodes"].text.rpartition(":")[2]).integer if "nnodes" in values else 1
        )
        if max_nodes is None:
            continue
        backend = values["rdzv_backend"].text if "rdzv_backend" in values else "static"
        endpoint = values.get("rdzv_endpoint")
        meeting = endpoint.text if endpoint is not None else ""
        port = (
            parse_address(meeting).port
            if meeting
            else values.get("master_port", Value("")).text.strip()
        )
        if not meeting and "master_addr" in values:
            meeting = f"{values['master_addr'].text}:{port or _DEFAULT_PORT}"
        start = process.command[0].origin
        yield _Launcher(start, part, meeting, port, max_nodes, backend == "static")


def _is_torchrun(process: Process) -> bool:
    """Return True if the command itself is torchrun, not one that gets it as an argument."""
    arguments = words_after_program(process.command, ("torchrun",), TORCHRUN_MODULES)
    if arguments is None:
        return False
    prefix = process.command[: len(process.command) - len(arguments)]
    return all(
        w.text.startswith("-")
        or _LAUNCH_WORD.match(w.text.rpartition("/")[2])
        or w.text in TORCHRUN_MODULES
        for w in prefix
    )


def _problem(earlier: _Launcher, later: _Launcher) -> Problem:
    values = later.part.values
    port_value = values.get("master_port") or values.get("rdzv_endpoint")
    name = f"--master-port={int(later.port or _DEFAULT_PORT) % 65535 + 1}"
    are_both_given = earlier.port and later.port
    where = (
        f"the torchrun of line {earlier.start.line}"
        if earlier.start.line != later.start.line
        else "the round before"
    )
    return Problem(
        kind="one_port",
        message=f"torchrun listens on port {later.port}, on which {where} listens at the same time"
        if are_both_given
        else f"without --master-port an older torchrun listens on {_DEFAULT_PORT}, as {where} does at "
        "the same time",
        observed=f"{port_value.origin.flag} {port_value.text}"
        if port_value is not None
        else "no --master-port",
        correction=f"torchrun {name} …   # another one for each; or --standalone, which takes a free one",
        origin=port_value.origin if port_value is not None else later.start,
    )
