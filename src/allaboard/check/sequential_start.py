"""Members of one job that a shell script starts one after the other: a forgotten ``&``.

The first of them waits in its init for the second, which is started only when the first has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from allaboard.check.concurrent_commands import uninterrupted_stretches
from allaboard.facts import ConfigFacts, Origin, Problem, Value
from allaboard.facts.address import is_this_host_alone, parse_address
from allaboard.formats.cli_flags import find_flags
from allaboard.formats.shell.script import Process, Script

ProcessView = Callable[[Process], ConfigFacts]
_FLAGS = {
    "rank": "rank",
    "world_size": "size",
    "dist_url": "place",
    "init_method": "place",
    "master_addr": "place",
}
"""Options of scripts for these values, by the names that scripts give them."""
_ELSEWHERE = re.compile(
    r"#.*\b(?:node|host|machine|server|terminal|window|shell|tab|pane|gpu ?box)", re.IGNORECASE
)
"""A comment which says that the lines after it are for another host or terminal than those before it."""


class _Member(msgspec.Struct, frozen=True):
    """One member of a job on this host."""

    name: str
    """ "rank 1" or "worker 1"."""
    job: tuple[str, ...]
    """What all members of its job have in common."""
    awaited_members: frozenset[str]
    """Names of the members without which it does not begin."""


def sequential_starts(script: Script, text: str, file: str, view: ProcessView) -> Iterator[Problem]:
    """Yield a problem for the first member of a job that must end before a member is started without which
    it cannot begin."""
    lines = text.split("\n")
    for stretch in uninterrupted_stretches(script):
        started_members: dict[tuple[str, ...], set[str]] = {}
        blocked: dict[tuple[str, ...], tuple[Process, _Member]] = {}
        for process in (p for step in stretch for p in step.processes):
            member = _member(process, view)
            if member is None:
                continue
            if member.job in blocked:
                first_process, waiting_member = blocked.pop(member.job)
                if member.name in waiting_member.awaited_members - started_members[
                    member.job
                ] and not _has_comment_between(lines, first_process, process):
                    yield _problem(first_process, waiting_member, process, member, file)
                    return
            started = started_members.setdefault(member.job, set())
            started.add(member.name)
            if process.is_background:
                continue
            if member.awaited_members <= started:
                started.clear()
            else:
                blocked[member.job] = process, member


def _member(process: Process, view: ProcessView) -> _Member | None:
    facts = view(process)
    spec = facts.spec
    if spec.cluster:
        return _tensorflow_member(facts, _program(process))
    if facts.part_of_source("torchrun") is not None:
        return None  # it gives its workers ranks of their own
    flags = {_FLAGS[n]: v for n, v in _script_options(process).items() if n in _FLAGS}
    values = spec.values
    rank, size = (
        values.get("rank") or flags.get("rank"),
        values.get("world_size") or flags.get("size"),
    )
    address, port = values.get("master_addr") or flags.get("place"), values.get("master_port")
    if rank is None or size is None or address is None or not _is_this_host(address):
        return None
    if port is None and not parse_address(address.text).port:
        return None  # an init without a port fails at once
    number, world_size = rank.integer, size.integer
    if number is None or world_size is None or not 0 <= number < world_size <= 1024:
        return None
    other_members = frozenset(f"rank {n}" for n in range(world_size) if n != number)
    job = (_program(process), address.text, port.text if port is not None else "", size.text)
    return _Member(f"rank {number}", job, other_members)


def _script_options(process: Process) -> dict[str, Value]:
    """Return the options of the script itself."""
    script_index = next((n for n, w in enumerate(process.command) if w.text.endswith(".py")), None)
    if script_index is None:
        return {}
    return find_flags(process.command[script_index + 1 :], frozenset(_FLAGS), frozenset()).values


def _program(process: Process) -> str:
    """Return the script or the module; members of one job run the same one."""
    texts = (w.text for w in process.command[1:] if not w.text.startswith("-"))
    return next(texts, "")


def _is_this_host(address: Value) -> bool:
    host = parse_address(address.text).host
    return bool(host) and is_this_host_alone(host)


def _tensorflow_member(facts: ConfigFacts, program: str) -> _Member | None:
    """Return the task of a TensorFlow cluster on this host. In jobs with parameter servers only the servers
    never end by themselves."""
    spec = facts.spec
    if spec.job is None or spec.index is None or spec.index.integer is None:
        return None
    tasks = {f"{job} {index}": value for job, index, value in spec.tasks()}
    name = f"{spec.job.text} {spec.index.integer}"
    if name not in tasks or not all(_is_this_host(v) for v in tasks.values()) or len(tasks) > 1024:
        return None
    job = tuple(f"{task} {value.text}" for task, value in tasks.items())
    ends_by_itself = "ps" in spec.cluster and spec.job.text != "ps"
    job = (program, *job)
    return _Member(name, job, frozenset() if ends_by_itself else frozenset(tasks) - {name})


def _has_comment_between(lines: list[str], first_process: Process, second: Process) -> bool:
    """Return True if a comment says that the two lines are for two hosts or terminals."""
    begin, end = (p.command[0].origin.line for p in (first_process, second))
    return any(_ELSEWHERE.search(line) for line in lines[max(begin - 4, 0) : end])


def _problem(
    first_process: Process, waiting_member: _Member, second: Process, member: _Member, file: str
) -> Problem:
    texts = " ".join(w.text for w in first_process.command)
    origin = first_process.command[0].origin
    line = second.command[0].origin.line
    return Problem(
        kind="in_turn",
        message=f"{waiting_member.name} has to end before {member.name} is started"
        + (f" in line {line}" if line != origin.line else "")
        + (
            ", and no server ends"
            if waiting_member.name.startswith("ps ")
            else ", and waits for it to begin"
        ),
        observed=texts[:80],
        correction="& at the end of that command, and `wait` behind the last one",
        origin=Origin(file=file, line=origin.line, column=origin.column),
    )
