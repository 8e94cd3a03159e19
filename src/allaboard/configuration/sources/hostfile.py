"""Hostfiles: Open MPI's, DeepSpeed's, MPICH's, and Horovod's ``-H a:4,b:4`` in a command.

Forms: ``host slots=4 max_slots=8`` (Open MPI's and DeepSpeed's hostfile), ``host:4`` (MPICH's
machine file), ``host`` alone, repeated for another slot in Open MPI's form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from allaboard.configuration.spec import list_tasks
from allaboard.contracts import ConfigurationSource
from allaboard.facts import (
    OPAQUE,
    ClusterSpec,
    Machine,
    Material,
    Origin,
    PartialSpec,
    Problem,
    Value,
    whole_number,
)
from allaboard.facts.address import parse_address

_LINE = r"\s*(?P<host>\S+?)(?P<colon>:\d+)?(?P<rest>(?:\s+\S+)*)\s*$"
_LAUNCHERS = frozenset(["mpirun", "mpiexec", "horovodrun", "prterun", "orterun"])
_LIST_FLAGS = frozenset(["-H", "--host", "-host", "--hosts", "-hosts"])
_SLOTS = 65_536
_LINES = 100_000
"""Lines that are read of one hostfile."""


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the hosts of a hostfile, and those of the first command with a host list."""
    if material.kind == "hostfile":
        yield _file(material)
    for command in material.commands:
        listed = _listed(command)
        if listed is not None:
            yield _inline(listed)
            return


def _file(material: Material) -> PartialSpec:
    machines: list[Machine] = []
    problems: list[Problem] = []
    lines = material.text.split("\n", _LINES)
    if len(lines) > _LINES and lines.pop().strip():
        problems.append(
            Problem(
                kind="hostfile",
                message=f"is the last one that is read: {_LINES:,} lines, and there are more",
                observed=lines[-1].strip()[:60],
                correction="one line a host, with slots=…",
                origin=Origin(file=material.file, line=_LINES, column=1),
            )
        )
    for number, line in enumerate(lines, 1):
        content = line.split("#")[0].rstrip()
        if not content.strip():
            continue
        column = len(content) - len(content.lstrip()) + 1
        origin = Origin(file=material.file, line=number, column=column)
        machine, message, right = _entry(content, origin)
        if message:
            problems.append(
                Problem(
                    kind="hostfile",
                    message=message,
                    observed=content.strip(),
                    correction=right,
                    origin=origin,
                )
            )
        if machine is not None:
            machines.append(machine)
    return PartialSpec(
        source="hostfile", layer="allocation", machines=tuple(machines), problems=tuple(problems)
    )


def _entry(content: str, origin: Origin) -> tuple[Machine | None, str, str]:
    match = re.match(_LINE, content)
    if match is None:
        return None, "is no line of a hostfile", "host slots=4"
    host, options = match["host"], (match["rest"] or "").split()
    if "=" in host or "," in host:
        return None, "is no host name", "one host a line: host slots=4"
    slots = int(match["colon"][1:10]) if match["colon"] else 0
    message = right = ""
    most = 0
    if slots > _SLOTS:
        return None, f"has {slots} slots", f"{host} slots=8"
    for option in options:
        name, equals, text = option.partition("=")
        name = name.replace("-", "_")
        if name == "max_slots":
            most = whole_number(text) or 0
        elif name != "slots" and name in ("slot", "Slots", "SLOTS", "cpu", "gpus", "ngpus"):
            message, right = f"has {option!r}, which no launcher reads", f"{host} slots={text or 1}"
        elif name == "slots" and not (equals and text.isascii() and text.isdecimal()):
            message, right = f"has a slot count that is not a number: {option!r}", f"{host} slots=1"
        elif name == "slots":
            # A bounded number of digits: Python refuses to convert more than 4,300.
            slots = int(text[:9])
            if slots > _SLOTS:
                return None, f"has {text[:20]} slots", f"{host} slots=8"
            if not slots:
                message, right = "has no slots: nothing will run there", f"{host} slots=1"
        elif not equals and re.match(r"(?:max_)?slots?\W", name):
            message, right = (
                f"has {option!r}, which no launcher reads",
                f"{host} slots={re.sub(r'[^0-9]', '', name)[:9] or 1}",
            )
        elif not equals and whole_number(option) is not None:
            message, right = f"has a bare number {option!r}", f"{host} slots={option}"
    if most and slots > most:
        message, right = f"has more slots ({slots}) than max_slots ({most})", f"{host} slots={most}"
    return Machine(Value(host, origin), slots), message, right


def _listed(command: Sequence[Value]) -> Value | None:
    """Return the argument after ``-H`` of a launcher's command; None if there is none."""
    program = command[0] if command else None
    if program is None or program.text.rpartition("/")[2] not in _LAUNCHERS:
        return None
    for position, argument in enumerate(command[:-1]):
        if argument.text in _LIST_FLAGS and OPAQUE not in command[position + 1].text:
            return command[position + 1]
    return None


def _inline(listed: Value) -> PartialSpec:
    machines = []
    for part in listed.text.split(",")[:_LINES]:
        host, slots = parse_address(part)[:2]
        if host:
            is_number = slots.isascii() and slots.isdecimal() and len(slots) < 6
            count = int(slots) if is_number else 0
            machines.append(Machine(Value(host, listed.origin), count))
    return PartialSpec(source="hostfile", layer="allocation", machines=tuple(machines))


def write(spec: ClusterSpec) -> str:
    """Return a hostfile in Open MPI's and DeepSpeed's form, one line a host with its tasks as slots."""
    counts: dict[str, int] = {}
    for task in list_tasks(spec):
        counts[task.host] = counts.get(task.host, 0) + 1
    return "".join(f"{host} slots={count}\n" for host, count in counts.items())


SOURCE = ConfigurationSource(read=read_material, write=write)
