"""Members of one job that a shell script starts one after the other: a forgotten ``&``.

The first of them waits in its init for the second, which is started when the first has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from allaboard.check.concurrent_commands import runs
from allaboard.facts import ConfigFacts, Origin, Problem, Value
from allaboard.facts.address import only_here, parse
from allaboard.formats.cli_flags import find_flags
from allaboard.formats.shell.script import Process, Script

View = Callable[[Process], ConfigFacts]
_FLAGS = {
    "rank": "rank",
    "world_size": "size",
    "dist_url": "place",
    "init_method": "place",
    "master_addr": "place",
}
"""What scripts call their own options for it."""
_ELSEWHERE = re.compile(
    r"#.*\b(?:node|host|machine|server|terminal|window|shell|tab|pane|gpu ?box)", re.IGNORECASE
)
"""A comment by which the lines after it are for another place than those before."""


class _Member(msgspec.Struct, frozen=True):
    """One member of a job on this host, by its ``name``; ``job`` is what all of its members have in common,
    ``others`` are those without which it does not begin."""

    name: str
    job: tuple[str, ...]
    others: frozenset[str]


def in_turn(script: Script, text: str, file: str, view: View) -> Iterator[Problem]:
    """The first member of each job that is awaited to end before another one is started that it needs."""
    lines = text.split("\n")
    for stretch in runs(script):
        here: dict[tuple[str, ...], set[str]] = {}
        blocked: dict[tuple[str, ...], tuple[Process, _Member]] = {}
        for process in (p for step in stretch for p in step.processes):
            member = _member(process, view)
            if member is None:
                continue
            if member.job in blocked:
                first, waits = blocked.pop(member.job)
                if member.name in waits.others - here[member.job] and not _apart(
                    lines, first, process
                ):
                    yield _problem(first, waits, process, member, file)
                    return
            there = here.setdefault(member.job, set())
            there.add(member.name)
            if process.background:
                continue
            if member.others <= there:
                there.clear()
            else:
                blocked[member.job] = process, member


def _member(process: Process, view: View) -> _Member | None:
    facts = view(process)
    spec = facts.spec
    if spec.cluster:
        return _task(facts, _program(process))
    if facts.part("torchrun") is not None:
        return None  # it gives its workers ranks of their own
    flags = {_FLAGS[n]: v for n, v in _own(process).items() if n in _FLAGS}
    told = spec.values
    rank, size = told.get("rank") or flags.get("rank"), told.get("world_size") or flags.get("size")
    place, port = told.get("master_addr") or flags.get("place"), told.get("master_port")
    if rank is None or size is None or place is None or not _local(place):
        return None
    if port is None and not parse(place.text).port:
        return None  # an init without a port fails at once
    number, many = rank.integer, size.integer
    if number is None or many is None or not 0 <= number < many <= 1024:
        return None
    others = frozenset(f"rank {n}" for n in range(many) if n != number)
    job = (_program(process), place.text, port.text if port is not None else "", size.text)
    return _Member(f"rank {number}", job, others)


def _own(process: Process) -> dict[str, Value]:
    """The options of the script itself."""
    at = next((n for n, w in enumerate(process.command) if w.text.endswith(".py")), None)
    if at is None:
        return {}
    return find_flags(process.command[at + 1 :], frozenset(_FLAGS), frozenset()).values


def _program(process: Process) -> str:
    """The script or the module: another one is no member of the same job."""
    words = (w.text for w in process.command[1:] if not w.text.startswith("-"))
    return next(words, "")


def _local(place: Value) -> bool:
    host = parse(place.text).host
    return bool(host) and only_here(host)


def _task(facts: ConfigFacts, program: str) -> _Member | None:
    """A task of TensorFlow: with parameter servers only these never end by themselves."""
    spec = facts.spec
    if spec.job is None or spec.index is None or spec.index.integer is None:
        return None
    tasks = {f"{job} {index}": value for job, index, value in spec.tasks()}
    name = f"{spec.job.text} {spec.index.integer}"
    if name not in tasks or not all(_local(v) for v in tasks.values()) or len(tasks) > 1024:
        return None
    job = tuple(f"{task} {value.text}" for task, value in tasks.items())
    served = "ps" in spec.cluster and spec.job.text != "ps"
    job = (program, *job)
    return _Member(name, job, frozenset() if served else frozenset(tasks) - {name})


def _apart(lines: list[str], first: Process, second: Process) -> bool:
    """Whether a comment says that the two lines are for two places."""
    begin, end = (p.command[0].origin.line for p in (first, second))
    return any(_ELSEWHERE.search(line) for line in lines[max(begin - 4, 0) : end])


def _problem(
    first: Process, waits: _Member, second: Process, member: _Member, file: str
) -> Problem:
    words = " ".join(w.text for w in first.command)
    at = first.command[0].origin
    line = second.command[0].origin.line
    return Problem(
        kind="in_turn",
        said=f"{waits.name} has to end before {member.name} is started"
        + (f" in line {line}" if line != at.line else "")
        + (
            ", and no server ends"
            if waits.name.startswith("ps ")
            else ", and waits for it to begin"
        ),
        observed=words[:80],
        correction="& at the end of that command, and `wait` behind the last one",
        origin=Origin(file=file, line=at.line, column=at.column),
    )
