"""``srun`` in a batch script: the step that starts the training, inside of its allocation.

Options are those of srun(1). Without options a step takes all that the ``#SBATCH`` lines asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from allaboard.contracts import ConfigurationSource
from allaboard.facts import OPAQUE, Material, PartialSpec, Problem, Value
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES
from allaboard.formats.cli_flags import (
    Flags,
    find_flags,
    words_after_each_program,
    words_after_program,
)
from allaboard.formats.shell.per_task_rendezvous import find_per_task_choices, read_step_size
from allaboard.formats.shell.sbatch_directives import read_batch_lines

_OPTIONS = {
    "nodes": "nnodes",
    "N": "nnodes",
    "ntasks": "world_size",
    "n": "world_size",
    "ntasks_per_node": "tasks_per_node",
}
_WANTED = frozenset(_OPTIONS) | frozenset(
    (
        "nodelist", "w", "cpus_per_task", "c", "gpus_per_node", "gpus_per_task", "gres", "jobid",
        "job_name", "J", "output", "o", "error", "e", "partition", "p", "account", "A", "time", "t",
        "mem", "exclude", "x", "chdir", "D", "relative", "r", "het_group", "nodefile", "F",
        "export",
    )
)  # fmt: skip
_FEWER = (
    "nodelist",
    "w",
    "exclude",
    "x",
    "relative",
    "r",
    "het_group",
    "nodefile",
    "F",
    "ntasks",
    "n",
)
"""Options by which a step may have fewer nodes than its allocation."""
_OTHERS = frozenset(_FEWER) - {"ntasks", "n"}
_FEWER_NODES = frozenset((*_FEWER, "nodes", "N"))
_BARE = frozenset(
    (
        "label", "l", "unbuffered", "u", "verbose", "v", "exclusive", "overlap", "pty",
        "overcommit", "O", "kill_on_bad_exit", "K", "immediate", "I", "quiet", "Q", "oversubscribe",
        "s",
    )
)  # fmt: skip
_TRAINS = r"(?:.*/)?(?:python[0-9.]*|torchrun|accelerate|deepspeed)\Z|.*\.py\Z"
_CARRIERS = r"\b(?:srun|ssh|pdsh|clush|mpirun|mpiexec|parallel|sbatch)\b"
_SLURM = SOURCE_VARIABLES["slurm"].fields
_NUMBERS = (*_SLURM["rank"], *_SLURM["node_rank"], *_SLURM["local_rank"])
_FROZEN = (
    r"(?P<flag>--(?:node|machine)[-_]rank)[= ]"
    rf"{OPAQUE}(?P<number>SLURM_(?:PROCID|NODEID)){OPAQUE}"
    rf"|\b(?P<name>(?:LOCAL_|NODE_)?RANK)={OPAQUE}(?P<number2>SLURM_(?:PROCID|NODEID|LOCALID)){OPAQUE}"
)
_OWN = {
    "RANK": "$SLURM_PROCID",
    "JAX_PROCESS_ID": "$SLURM_PROCID",
}
"""Variables that tell a task apart, and the one by which Slurm numbers it."""
_MANY = ("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--tasks-per-node")
_PER_NODE = ("torchrun", "accelerate")
_STARTS = r"(?:^|[\s/;&|])(torchrun|accelerate)(?:\s|\Z)|\btorch\.distributed\.(?:run|launch)\b"


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the step of a batch script that starts the training."""
    if material.kind != "shell":
        return
    problems = list(_alone(material))
    steps = [
        find_flags(w, _WANTED, _BARE)
        for w in words_after_each_program(material.commands, ("srun",))
    ]
    problems += [p for s in steps for p in _chosen(s, material)]
    # srun hostname, srun mkdir: not the step that trains.
    steps = [s for s in steps if any(re.match(_TRAINS, w.text) for w in s.program_words)]
    launching = [s for s in steps if _launcher(s)]
    if len(launching) > 1 and all(_FEWER_NODES & s.values.keys() for s in launching):
        # One node each, started one by one: which of them are one job, only a run could tell.
        problems = [p for s in launching for p in (*_doubled(s, material), *_frozen(s, material))]
        yield PartialSpec(source="srun_each", layer="step", problems=tuple(problems))
    elif steps:
        # The one with a launcher; else the largest: others prepare the data, or evaluate.
        flags = max(steps, key=lambda s: (bool(_launcher(s)), _size(s)))
        problems += _doubled(flags, material)
        problems += _frozen(flags, material)
        yield _spec(flags, problems)
    elif problems:
        yield PartialSpec(source="srun", layer="step", problems=tuple(problems))


def _spec(flags: Flags, problems: list[Problem]) -> PartialSpec:
    values = {_OPTIONS[n]: v for n, v in flags.values.items() if n in _OPTIONS}
    least = values.get("nnodes")
    fewer = next((flags.values[n] for n in _FEWER if n in flags.values), None)
    if least is not None:
        # `-N 2-4` is a range; its lower end is what the step surely has.
        values["nnodes"] = Value(least.text.partition("-")[0], least.origin)
    elif fewer is not None:
        values["nnodes"] = Value("", fewer.origin)
    launcher = _launcher(flags)
    if launcher is not None:
        values["launcher"] = launcher
    return PartialSpec(source="srun", layer="step", values=values, problems=tuple(problems))


def _launcher(flags: Flags) -> Value | None:
    """Return the argument of the step that starts a launcher of all processes of a node; None for none."""
    for argument in flags.program_words:
        match = re.search(_STARTS, argument.text)
        if match:
            return Value(match[1] or "torchrun", argument.origin)
    return None


def _size(flags: Flags) -> float:
    """Return how many nodes the step asks for; infinity, for all of them, if it does not say."""
    nodes = flags.values.get("nodes") or flags.values.get("N")
    return float("inf") if nodes is None else nodes.integer or 0


def _doubled(flags: Flags, material: Material) -> Iterator[Problem]:
    """Yield a problem for several launchers on a node, each of which starts all of the node's processes."""
    name = next((w.text.rpartition("/")[2] for w in flags.program_words), "")
    text = " ".join(w.text for w in flags.program_words[:6])
    if name not in _PER_NODE and "-m torch.distributed.run" not in text:
        return
    lines = dict(read_batch_lines(material.text, material.file))
    each = flags.values.get("ntasks_per_node")
    if each is None and not {"n", "ntasks"} & flags.values.keys():
        each = lines.get("--ntasks-per-node")
    count = each.integer if each is not None else None
    if each is None or count is None or count < 2:
        return
    yield Problem(
        kind="launch",
        message=f"srun starts {count} launchers on every node, and each of them starts all "
        "processes of the node",
        observed=f"{each.origin.flag}={each.text}",
        correction="srun --ntasks-per-node=1 torchrun …",
        origin=each.origin,
    )


def _frozen(flags: Flags, material: Material) -> Iterator[Problem]:
    """Yield a problem for a task's own number that the batch script has filled in already: 0, for every
    task."""
    lines = dict(read_batch_lines(material.text, material.file))
    counts = [lines[n].integer for n in _MANY if n in lines]
    counts += [flags.values[n].integer for n in _OPTIONS if n in flags.values]
    if not any(c is not None and c > 1 for c in counts):
        return
    command_text = " ".join(w.text for w in flags.program_words)
    static = "c10d" not in command_text
    yield from _fixed(flags)
    yield from _taken(flags, material)
    for match in re.finditer(_FROZEN, command_text):
        if match["flag"] and not static:
            continue  # c10d gives the numbers itself
        setting, number = match["flag"] or match["name"], match["number"] or match["number2"]
        yield Problem(
            kind="launch",
            message=f"{setting} is ${number} as the batch script has it: 0, for every task of the step",
            observed=f"{setting}=${number}, outside of the step",
            correction=f"srun bash -c '… {setting}=${number} …'   # single quotes: each task's own",
            origin=flags.program_words[0].origin,
        )
    if _launcher(flags) is not None:
        return  # torchrun sets these itself
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "JAX_PROCESS_ID"):
        number = material.partly.get(name, "")
        # A step that sets it again does so in its own shell.
        if number.strip(OPAQUE) in _NUMBERS and not re.search(rf"\b{name}=", command_text):
            yield Problem(
                kind="launch",
                message=f"{name} is set in the batch script, where ${number.strip(OPAQUE)} is 0: "
                "every task of the step has that number",
                observed=f"export {name}=${number.strip(OPAQUE)}, before srun",
                correction=f"srun bash -c 'export {name}=${number.strip(OPAQUE)}; …'",
                origin=flags.program_words[0].origin,
            )


def _taken(flags: Flags, material: Material) -> Iterator[Problem]:
    """Yield a problem for ``bash -c "RANK=…; … $RANK"``: in double quotes the batch script's own shell has
    filled it in."""
    for argument in flags.program_words:
        for name in sorted(set(re.findall(rf"{OPAQUE}(\w+){OPAQUE}", argument.text))):
            mark = f"{OPAQUE}{name}{OPAQUE}"
            # NAME=$NAME hands on what the submitter's own environment may have.
            passed = re.search(rf"\b{name}=[\"']?{mark}", argument.text)
            sets = re.search(rf"\b{name}=", argument.text)
            if passed or sets is None or mark not in argument.text[sets.end() :]:
                continue
            if name in material.variables or name in material.opaque:
                continue
            yield Problem(
                kind="launch",
                message=f"${name} in double quotes is the batch script's, which has none: what the step sets "
                "is not what it takes",
                observed=f"{name}=… and ${name} in one pair of double quotes",
                correction=f"srun bash -c '… ${name} …'   # single quotes, or \\${name}",
                origin=argument.origin,
            )


def _chosen(flags: Flags, material: Material) -> Iterator[Problem]:
    """Yield a problem for a meeting place that the shell of each task chooses by itself."""
    if flags.values.keys() & _OTHERS:
        return  # on which nodes, only a run could tell
    nodes, tasks = read_step_size(
        flags.values, dict(read_batch_lines(material.text, material.file))
    )
    for shell, argument in itertools.pairwise(flags.program_words):
        if not re.fullmatch(r"-\w*c", shell.text):
            continue
        for choice in find_per_task_choices(argument.text):
            if (tasks if choice.is_port else nodes) < 2:
                continue
            chooser = "task of the step" if choice.is_port else "node"
            yield Problem(
                kind="launch",
                message=f"{choice.setting} is {choice.value} as the shell of each task has it: another one "
                f"on every {chooser}, and they never meet",
                observed=f"{choice.setting} {choice.value}, inside of the step",
                correction=choice.correction,
                origin=argument.origin,
            )


def _fixed(flags: Flags) -> Iterator[Problem]:
    """Yield a problem for one number that every task gets: ``srun --export=ALL,RANK=0``."""
    exported = flags.values.get("export")
    command_text = " ".join(w.text for w in flags.program_words)
    for part in exported.text.split(",") if exported is not None else ():
        name, _, number = part.partition("=")
        own_number = _OWN.get(name)
        if (
            exported is None
            or own_number is None
            or not number.isdecimal()
            or _launcher(flags) is not None
        ):
            continue
        if flags.program_words[0].text.endswith(".sh") or re.search(rf"\b{name}=", command_text):
            continue  # set again, for each task
        yield Problem(
            kind="launch",
            message=f"{name} is {number} in every task of the step: --export sets one value for all",
            observed=f"--export={exported.text}"[:100],
            correction=f"srun bash -c 'export {name}={own_number}; …'   # single quotes: each task's own",
            origin=exported.origin,
        )


def _alone(material: Material) -> Iterator[Problem]:
    """Yield a problem for a launcher of its own host's processes that nothing starts on the other hosts."""
    if re.search(_CARRIERS, "\n".join(_code(material.text))):
        return
    nodes = dict(read_batch_lines(material.text, material.file))
    node_count = nodes.get("--nodes") or nodes.get("-N")
    count = node_count.integer if node_count is not None else None
    if node_count is None or count is None or count < 2:
        return
    for command in material.commands:
        arguments = words_after_program(command, _PER_NODE, ("torch.distributed.run",))
        if arguments is None:
            continue
        name = command[len(command) - len(arguments) - 1].text
        yield Problem(
            kind="launch",
            message=f"{name} is started on the first of {count} nodes alone: a batch script runs "
            "there, and the others are never asked",
            observed=f"{node_count.origin.flag}={node_count.text}, and no srun",
            correction=f"srun --ntasks-per-node=1 {name} …",
            origin=command[0].origin,
        )
        return


def _code(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.lstrip().startswith("#")]


SOURCE = ConfigurationSource(read=read_material)
