"""A launch command, and the hostfile that it names: its processes, nodes and hosts must be in that file.

Open MPI and Horovod start no more processes than there are slots, unless they may oversubscribe. DeepSpeed
(launcher/runner.py) refuses hosts and slots that the file lacks; it takes as many hosts as there are if
--num_nodes asks for more, and --num_gpus instead of the slots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.configuration.sources.hostfile import SOURCE as HOSTFILE
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import OPAQUE, Machine, Material, Problem, Value
from allaboard.facts.address import is_this_host_alone
from allaboard.formats.cli_flags import find_flags, read_flags, words_after_program

_COUNTS_SLOTS = ("mpirun", "mpiexec", "prterun", "orterun", "horovodrun")
_COUNT, _FILE = ("np", "n", "c"), ("hostfile", "machinefile", "H")
_BARE = frozenset(("allow_run_as_root", "v", "verbose", "tag_output"))
_DEEPSPEED_BARE = frozenset(
    ("module", "no_python", "no_local_rank", "no_ssh_check", "no_ssh", "force_multi", "save_pid")
)
_WRITES = re.compile(r"(?:>|\btee\b)([^\n;|&]*)")
_NAME = re.compile(r"[\w.-]+")
_HOSTFILE_NAME = re.compile(r"\w*(?:hostfile|machinefile)\w*")
_OVERSUBSCRIBES = re.compile(r"oversubscribe", re.IGNORECASE)


def hostfile_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield what contradicts each other in the commands of a script and the hostfiles that they name."""
    written_names = _written_names(material.text)
    for command in material.commands:
        slot_arguments = words_after_program(command, _COUNTS_SLOTS)
        arguments = words_after_program(command, ("deepspeed",), ("deepspeed.launcher.runner",))
        if slot_arguments is None and arguments is None:
            continue
        if any(word.text.rpartition("/")[2] in written_names for word in command):
            continue  # the script writes the file that it names: one that lies there is old
        if slot_arguments is not None:
            yield from _slot_problems(slot_arguments, files)
        if arguments is not None:
            yield from _deepspeed_problems(arguments, files)


def _written_names(text: str) -> frozenset[str]:
    """Return the names, without folders, of what a script may write with ``>`` or ``tee``."""
    return frozenset(n for target in _WRITES.findall(text) for n in _NAME.findall(target))


def _slot_problems(arguments: Sequence[Value], files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem if there are fewer slots than processes, and every host says how many it has."""
    flags = find_flags(arguments, frozenset((*_COUNT, "hostfile", "machinefile")), _BARE)
    count = next((flags.values[n] for n in _COUNT if n in flags.values), None)
    machines, file = _machines(flags.values, files)
    if count is None or count.integer is None or not machines:
        return
    slots = sum(m.slots for m in machines)
    if (
        not all(m.slots for m in machines)
        or count.integer <= slots
        or any(_OVERSUBSCRIBES.search(word.text) for word in arguments)
    ):
        return
    yield launch_problem(
        count,
        message=f"{count.integer} processes are asked for, and {file} has {slots} slots: none is started",
        correction=f"{count.origin.flag} {slots}   # or more slots=… in {file}",
    )


def _deepspeed_problems(arguments: Sequence[Value], files: LaunchedFiles) -> Iterator[Problem]:
    flags = read_flags(arguments, _DEEPSPEED_BARE)
    program = flags.program_words[0] if flags.program_words else None
    if program is not None and _HOSTFILE_NAME.fullmatch(program.text.rpartition("/")[2]):
        yield launch_problem(
            program,
            message=f"deepspeed takes {program.text} for the script: it has no flag before it",
            correction=f"--hostfile={program.text}",
        )
    machines, file = _machines(flags.values, files)
    if not machines:
        return
    slots_of = {m.name.text: m.slots for m in machines}
    for name in ("include", "i", "exclude", "e"):
        if name in flags.values:
            yield from _filter_problems(flags.values[name], slots_of, file)
    nodes, gpus = flags.values.get("num_nodes"), flags.values.get("num_gpus")
    if nodes is not None and nodes.integer is not None and nodes.integer > len(slots_of):
        yield launch_problem(
            nodes,
            message=f"{nodes.integer} nodes are asked for, and {file} has {len(slots_of)} "
            f"host{'s' if len(slots_of) > 1 else ''}: DeepSpeed starts on those alone",
            correction=f"{nodes.origin.flag} {len(slots_of)}   # or a line `HOST slots=N` for each host",
        )
    few = [m for m in machines if m.slots and gpus is not None and (gpus.integer or 0) > m.slots]
    if gpus is not None and few:
        yield Problem(
            kind="launch.warning",
            message=f"{gpus.text} processes start on each host, and {few[0].name.text} has {few[0].slots} "
            f"slots in {file}",
            observed=f"{gpus.origin.flag} {gpus.text}",
            correction=f"{gpus.origin.flag} {few[0].slots}   # or slots={gpus.text}, if it has so many GPUs",
            origin=gpus.origin,
        )
    address = flags.values.get("master_addr")
    if address is not None and is_this_host_alone(address.text) and len(slots_of) > 1:
        yield launch_problem(
            address,
            message=f"{address.text} is each host itself, and {file} has {len(slots_of)} hosts: they do "
            f"not meet",
            correction=f"{address.origin.flag}={machines[0].name.text}",
        )


def _filter_problems(value: Value, slots_of: Mapping[str, int], file: str) -> Iterator[Problem]:
    """Yield a problem for each host or slot of ``node1@node2:0,2`` that the file does not have."""
    if OPAQUE in value.text or "$" in value.text:
        return
    for part in value.text.split("@"):
        host, _, numbers = part.strip().partition(":")
        slots = slots_of.get(host)
        absent = [n for n in re.findall(r"\d+", numbers) if slots and int(n) >= slots]
        if slots is not None and not absent:
            continue
        absence = (
            f"no host {host}" if slots is None else f"no slot {absent[0]} of {host} (slots={slots})"
        )
        yield launch_problem(
            value,
            message=f"{file} has {absence}: DeepSpeed refuses to start",
            correction=f"{value.origin.flag}={next(iter(slots_of))}   # a host of {file}, slots from 0",
        )
        return


def _machines(
    options: Mapping[str, Value], files: LaunchedFiles
) -> tuple[tuple[Machine, ...], str]:
    """Return the hosts of the named hostfile, and its name; () if it is not found or has faults of its "
    "own."""
    named = next((options[n] for n in _FILE if n in options), None)
    file_text = files.text_of(named) if named is not None else None
    if file_text is None:
        return (), ""
    material = Material(kind="hostfile", file=file_text[0], text=file_text[1])
    parts = [p for p in HOSTFILE.read(material) if p.machines]
    if not parts or parts[0].problems or "max" in file_text[1]:
        return (), ""
    return parts[0].machines, file_text[0].rpartition("/")[2]
