"""``mpirun``, ``mpiexec`` and ``horovodrun`` in a command line: how many processes on which hosts.

Options are those of mpirun(1) of Open MPI, of Hydra's mpiexec (MPICH, Intel MPI) and of horovodrun.
The hosts of ``-H a:4,b:4`` are read by `hostfile`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, Origin, PartialSpec, Problem, Value, address, whole_number
from allaboard.formats.cli_flags import Flags, find_flags, words_after_each_program
from allaboard.formats.python_commands import PYTHON_PROGRAM
from allaboard.formats.shell.sbatch_directives import read_batch_lines

_PROGRAMS = ("mpirun", "mpiexec", "horovodrun", "prterun", "orterun", "mpiexec.hydra")
_COUNT = ("np", "n", "c")
_HOST_LIST = re.compile(r"[A-Za-z][\w.-]*:\d+(?:,[\w.-]+:\d+)*")
"""Matches a list of hosts with their slots, which is no name of a program."""
_EACH = ("npernode", "ppn", "N", "perhost")
_HOSTS = ("H", "host")
_OTHER_MPI = re.compile(r"intel|impi|mpich|hydra|mvapich|OVERSUBSCRIBE", re.I)
"""Matches batch scripts that may use an MPI which counts no slots."""
_LAUNCHERS = r"\b(?:torchrun|accelerate|deepspeed|torch\.distributed)\b"
_OWN = {"RANK": "$OMPI_COMM_WORLD_RANK", "JAX_PROCESS_ID": "$OMPI_COMM_WORLD_RANK"}
"""Variables that tell a process apart, and the one by which Open MPI numbers it; MPICH's is PMI_RANK."""
_WANTED = frozenset(
    (*_COUNT, *_EACH, *_HOSTS, "hosts", "hostfile", "machinefile", "f", "x", "map_by", "bind_to")
)
_BARE = frozenset(
    (
        "oversubscribe", "allow_run_as_root", "v", "verbose", "tag_output",
    )
)  # fmt: skip


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the step that the first command of an MPI launcher starts."""
    for arguments in words_after_each_program(material.commands, _PROGRAMS):
        flags = find_flags(arguments, _WANTED, _BARE)
        values = dict(_values(flags))
        exported = dict(_exported(arguments))
        fixed = next(_fixed(arguments, flags), None)
        bare_hosts = _hosts_without_flag(arguments)
        if values or exported or fixed is not None:
            yield PartialSpec(
                source="mpirun",
                layer="step",
                values={**values, **exported},
                problems=tuple(
                    p
                    for p in (
                        _too_many(flags),
                        _more_than_tasks(flags, material),
                        _doubled(flags),
                        fixed,
                        bare_hosts,
                    )
                    if p is not None
                ),
            )
            return


def _values(flags: Flags) -> Iterator[tuple[str, Value]]:
    for field, names in (("world_size", _COUNT), ("tasks_per_node", _EACH)):
        value = next((flags.values[n] for n in names if n in flags.values), None)
        if value is not None:
            yield field, value


def _exported(arguments: Sequence[Value]) -> Iterator[tuple[str, Value]]:
    """Yield what Open MPI sets in every process: ``-x MASTER_ADDR=node0``."""
    for flag, argument in itertools.pairwise(arguments):
        name, equals, text = argument.text.partition("=")
        if flag.text == "-x" and equals and name in ("MASTER_ADDR", "MASTER_PORT"):
            place = argument.origin
            origin = Origin(variable=name, file=place.file, line=place.line, column=place.column)
            yield name.lower(), Value(text, origin)


def _fixed(arguments: Sequence[Value], flags: Flags) -> Iterator[Problem]:
    """Yield a problem for one number that all processes get: ``-x RANK=0``, or Hydra's ``-env RANK 0``."""
    count = next((flags.values[n] for n in _COUNT if n in flags.values), None)
    if count is None or (count.integer or 0) < 2 or any(w.text == ":" for w in arguments):
        return  # one process, or several groups, each with options of its own
    program = flags.program_words[0].text if flags.program_words else ""
    command_text = " ".join(w.text for w in flags.program_words)
    if not PYTHON_PROGRAM.match(program) or re.search(_LAUNCHERS, command_text):
        return  # what may well set it again, for each process
    for position, argument in enumerate(arguments[: len(arguments) - len(flags.program_words)]):
        text = " ".join(w.text for w in arguments[position : position + 3])
        setting = re.match(r"-x (\w+)=(\d+)(?: |\Z)|-g?env (\w+)[= ](\d+)(?: |\Z)", text)
        name, number = (setting[1] or setting[3], setting[2] or setting[4]) if setting else ("", "")
        if name in _OWN:
            yield launch_problem(
                argument,
                message=f"{name} is {number} in all {count.text} processes: {argument.text} sets one "
                "value for all",
                correction=f"mpirun … bash -c 'export {name}={_OWN[name]}; exec python …'",
                observed=f"{argument.text} {name}={number}, {count.origin.flag} {count.text}",
            )


def _hosts_without_flag(arguments: Sequence[Value]) -> Problem | None:
    """Return a problem for hosts that stand where the program is expected: `-np 4 a:2,b:2 python`."""
    for before, word in itertools.pairwise(arguments):
        if PYTHON_PROGRAM.match(word.text):
            return None
        if not _HOST_LIST.fullmatch(word.text) or not re.fullmatch(r"[0-9]+", before.text):
            continue
        return launch_problem(
            word,
            message=f"{word.text} is taken for the program: the hosts have no -H before them",
            correction=f"-H {word.text}",
        )
    return None


def _more_than_tasks(flags: Flags, material: Material) -> Problem | None:
    """Return a problem if a batch script's `mpirun` starts more processes than its job has tasks.

    Under Slurm the tasks are Open MPI's slots; Intel's MPI and MPICH do not count them.
    """
    count = next((flags.values[n] for n in _COUNT if n in flags.values), None)
    number = count.integer if count is not None else None
    options = (
        {} if material.kind != "shell" else dict(read_batch_lines(material.text, material.file))
    )
    own_slots = {"H", "host", "hostfile", "machinefile", "oversubscribe", "map_by", *_EACH}
    if count is None or number is None or flags.is_opaque or own_slots & flags.values.keys():
        return None
    if not options or _OTHER_MPI.search(material.text):
        return None
    total = options.get("--ntasks") or options.get("-n")
    each = options.get("--ntasks-per-node") or options.get("--tasks-per-node")
    nodes = options.get("--nodes") or options.get("-N")
    tasks = total.integer if total is not None else None
    if total is None and each is not None and each.integer is not None:
        node_count = nodes.integer if nodes is not None else 1
        tasks = each.integer * node_count if node_count is not None else None
    stated = total or each
    if tasks is None or stated is None or not 0 < tasks < number:
        return None
    return launch_problem(
        count,
        message=f"{count.origin.flag} {number} asks for {number} processes, and the job has {tasks} tasks: "
        "Open MPI refuses to start",
        correction=f"{count.origin.flag} $SLURM_NTASKS   # or ask for {number} tasks",
        observed=f"{stated.origin.flag} {stated.text}",
    )


def _too_many(flags: Flags) -> Problem | None:
    """Return a problem if there are more processes than ``-H`` has slots: Open MPI and horovodrun refuse to
    start."""
    count = next((flags.values[n] for n in _COUNT if n in flags.values), None)
    listed = next((flags.values[n] for n in _HOSTS if n in flags.values), None)
    number = count.integer if count is not None else None
    over = "oversubscribe" in flags.values or "OVERSUBSCRIBE" in (
        flags.values.get("map_by", Value("")).text.upper()
    )
    if listed is None or count is None or number is None or over or flags.is_opaque:
        return None
    hosts = [address.parse_address(part)[:2] for part in listed.text.split(",") if part.strip()]
    slots = [1 if not text else whole_number(text) for _, text in hosts]
    known_slots = [s for s in slots if s is not None]
    if not hosts or len(known_slots) < len(slots) or number <= sum(known_slots):
        return None
    each = -(-number // len(hosts))
    right = ",".join(f"{host}:{each}" for host, _ in hosts[:8])
    flag = listed.origin.flag
    return launch_problem(
        count,
        message=f"{count.origin.flag} {number} asks for {number} processes, and {flag} has "
        f"{sum(known_slots)} slots",
        correction=f"{flag} {right}   # or {count.origin.flag} {sum(known_slots)}",
        observed=f"{flag} {listed.text}"[:100],
    )


def _doubled(flags: Flags) -> Problem | None:
    """Return a problem for several launchers on a host, each of which starts all of the host's processes."""
    name = next((w.text.rpartition("/")[2] for w in flags.program_words[:1]), "")
    text = " ".join(w.text for w in flags.program_words)
    is_launcher = name in ("torchrun", "accelerate") or "-m torch.distributed.run" in text
    if not is_launcher or re.search(
        r"--(?:nproc[-_]per[-_]node|num[-_]processes)[= ]1(?:\s|\Z)", text
    ):
        return None
    each = next((flags.values[n] for n in _EACH if n in flags.values), None)
    count = next((flags.values[n] for n in _COUNT if n in flags.values), None)
    listed = next((flags.values[n] for n in _HOSTS if n in flags.values), None)
    hosts = (
        len({part.partition(":")[0] for part in listed.text.split(",")})
        if listed is not None
        else 0
    )
    number = count.integer if count is not None else None
    per_host = each.integer if each is not None else None
    if each is None and count is not None and number and hosts and number > hosts:
        each, per_host = count, -(-number // hosts)
    if each is None or per_host is None or per_host < 2:
        return None
    right = f"{each.origin.flag} {1 if each is not count else hosts}"
    return launch_problem(
        each,
        message=f"mpirun starts {per_host} launchers on a host, and each of them starts all processes of the "
        "host",
        correction=f"mpirun {right} … {name} …",
    )


SOURCE = ConfigurationSource(read=read_material)
