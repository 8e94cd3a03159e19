"""The member of a job that a script starts on each of several hosts with one and the same number."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.check.sequential_start import View
from allaboard.facts import ConfigFacts, Origin, Problem, Value
from allaboard.formats.shell.nested import read_inside
from allaboard.formats.shell.script import Script

_NUMBERS = (("node_rank", "nnodes", "--node-rank=$i"), ("rank", "world_size", "RANK=$i"))


def same_number(script: Script, file: str, view: View) -> Iterator[Problem]:
    """One problem for each command that is run so."""
    for one in script.on_each:
        both = zip(_views(one.told, file, view), _views(one.bare, file, view), strict=False)
        for told, bare in both:
            found = _numbered(told, bare)
            if found is not None and (one.alike or _meets_at_one(told)):
                yield _problem(*found, one.told.origin)
                break


def _views(told: Value, file: str, view: View) -> list[ConfigFacts]:
    flow = read_inside(told, file).flow
    return [view(process) for step in flow for process in step.processes]


def _numbered(facts: ConfigFacts, bare: ConfigFacts) -> tuple[Value, int, str] | None:
    """The literal number of this member, of how many it is one, and how it is to be written."""
    told = facts.spec.values
    backend = told.get("rdzv_backend")
    for name, many, right in _NUMBERS:
        value, size = bare.spec.values.get(name), facts.spec.number(many)
        if name == "node_rank" and (backend is not None and backend.text != "static"):
            return None  # it gives the numbers itself
        if value is not None and value.integer is not None and size is not None and size > 1:
            return value, size, right
    return None


def _meets_at_one(facts: ConfigFacts) -> bool:
    """Whether the place is literal: by the name of the host each round may begin a job of its own."""
    told = facts.spec.values
    place = told.get("master_addr") or told.get("rdzv_endpoint")
    port = told.get("master_port")
    return place is not None and bool(place.text) and (port is None or bool(port.text))


def _problem(value: Value, size: int, right: str, there: Origin) -> Problem:
    return Problem(
        kind="launch",
        said=f"{value.origin.name} is {value.text} on every host to which this command is sent: {size} are "
        "awaited, and all of them are the same one",
        observed=f"{value.origin.name} {value.text}, in each round",
        correction=f'i=0; for host in …; do ssh $host "… {right} …" & i=$((i + 1)); done',
        origin=value.origin if value.origin.line else there,
    )
