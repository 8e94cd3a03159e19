"""Members of a job that a script starts on each of several hosts with one and the same number."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.check.sequential_start import ProcessView
from allaboard.facts import ConfigFacts, Origin, Problem, Value
from allaboard.formats.shell.nested import read_inner_script
from allaboard.formats.shell.script import Script

_NUMBERS = (("node_rank", "nnodes", "--node-rank=$i"), ("rank", "world_size", "RANK=$i"))


def repeated_numbers(script: Script, file: str, view: ProcessView) -> Iterator[Problem]:
    """Yield a problem for each command that is sent to every host with the same rank or node rank."""
    for command in script.remote_commands:
        view_pairs = zip(
            _views(command.first_round, file, view),
            _views(command.without_variables, file, view),
            strict=False,
        )
        for full, bare in view_pairs:
            number = _literal_number(full, bare)
            if number is not None and (command.host_independent or _has_fixed_meeting_place(full)):
                yield _problem(*number, command.first_round.origin)
                break


def _views(command: Value, file: str, view: ProcessView) -> list[ConfigFacts]:
    flow = read_inner_script(command, file).flow
    return [view(process) for step in flow for process in step.processes]


def _literal_number(facts: ConfigFacts, bare: ConfigFacts) -> tuple[Value, int, str] | None:
    """Return the literal number of this member, how many members there are, and how the number should be
    written; None if the command has no such number."""
    values = facts.spec.values
    backend = values.get("rdzv_backend")
    for name, size_field, correction in _NUMBERS:
        value, size = bare.spec.values.get(name), facts.spec.number(size_field)
        if name == "node_rank" and (backend is not None and backend.text != "static"):
            return None  # it gives the numbers itself
        if value is not None and value.integer is not None and size is not None and size > 1:
            return value, size, correction
    return None


def _has_fixed_meeting_place(facts: ConfigFacts) -> bool:
    """Return True if the meeting place is literal. If it is the host's own name, each round may begin a job
    of its own."""
    values = facts.spec.values
    address = values.get("master_addr") or values.get("rdzv_endpoint")
    port = values.get("master_port")
    return address is not None and bool(address.text) and (port is None or bool(port.text))


def _problem(value: Value, size: int, number_text: str, command_origin: Origin) -> Problem:
    return Problem(
        kind="launch",
        message=f"{value.origin.name} is {value.text} on every host to which this command is sent: "
        f"{size} different members are expected",
        observed=f"{value.origin.name} {value.text}, in each round",
        correction=f'i=0; for host in …; do ssh $host "… {number_text} …" & i=$((i + 1)); done',
        origin=value.origin if value.origin.line else command_origin,
    )
