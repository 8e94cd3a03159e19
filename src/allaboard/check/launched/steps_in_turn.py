"""Steps that a batch script starts on one host after the other, although each waits for the next: a forgotten
``&`` behind ``srun -w HOST accelerate launch …``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from allaboard.check.launched.named_files import LaunchedFiles, config_values
from allaboard.configuration.slurm_steps.started_step import LAUNCHER_MODULES, NODE_LAUNCHERS
from allaboard.facts import OPAQUE, Problem, Value, whole_number
from allaboard.formats.cli_flags import find_flags, read_flags, words_after_program
from allaboard.formats.shell.script import Script
from allaboard.formats.shell.slurm_options import BARE_OPTIONS, VALUED_OPTIONS

_HOST_OPTIONS = ("w", "nodelist")
_COUNT_FLAGS = ("num_machines", "nnodes")
_RANK_FLAGS = ("machine_rank", "node_rank")
_VALUELESS = frozenset(
    ("multi_gpu", "use_deepspeed", "use_fsdp", "module", "m", "cpu", "standalone")
)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class _HostStep:
    """A launcher that one step starts on one host, and waits for."""

    host: Value
    shape: str
    """The launcher's words without their numbers, which are alike in all steps of one job."""
    rank: int | None
    """Number of the machine, as far as the command or its config file says it."""
    machines: int | None
    """Number of machines, likewise."""


def steps_in_turn(script: Script, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem for the first of two neighbouring steps that would have to run at the same time."""
    previous: tuple[_HostStep, Sequence[Value]] | None = None
    for step in script.flow:
        if not step.words:
            continue
        current = _host_step(step.words, files) if step.is_certain and not step.loops else None
        if current is None or step.is_background:
            previous = None
            continue
        if previous is not None and _are_one_job(previous[0], current):
            yield _problem(*previous, current, step.words)
            return
        previous = current, step.words


def _host_step(step_words: Sequence[Value], files: LaunchedFiles) -> _HostStep | None:
    arguments = words_after_program(step_words, ("srun",))
    if arguments is None:
        return None
    flags = find_flags(arguments, VALUED_OPTIONS, BARE_OPTIONS)
    host = next((flags.values[o] for o in _HOST_OPTIONS if o in flags.values), None)
    launcher = words_after_program(flags.program_words, NODE_LAUNCHERS, LAUNCHER_MODULES)
    if host is None or launcher is None or re.search(r"[,\[]", host.text) or OPAQUE in host.text:
        return None
    launcher_flags = read_flags([w for w in launcher if w.text != "launch"], _VALUELESS)
    if launcher_flags.is_opaque or "rdzv_backend" in launcher_flags.values:
        return None
    numbers = {name: value.integer for name, value in launcher_flags.values.items()}
    config_value = launcher_flags.values.get("config_file")
    config = files.config_of(config_value) if config_value is not None else None
    if config is not None:
        stated = {n: whole_number(text) for n, text in config_values(config[1]).items()}
        numbers = {**stated, **numbers}
    rank = next((n for f in _RANK_FLAGS if (n := numbers.get(f)) is not None), None)
    count = next((n for f in _COUNT_FLAGS if (n := numbers.get(f)) is not None), None)
    shape = " ".join(_NUMBER.sub("#", w.text) for w in flags.program_words)
    return _HostStep(host, shape, rank, count)


def _are_one_job(first: _HostStep, second: _HostStep) -> bool:
    """Return True if the two steps are two machines of one job."""
    if first.host.text == second.host.text or first.shape != second.shape:
        return False
    machines = first.machines or second.machines
    return machines is not None and machines > 1 and first.rank != second.rank


def _problem(
    first: _HostStep, step_words: Sequence[Value], second: _HostStep, later_words: Sequence[Value]
) -> Problem:
    line = later_words[0].origin.line
    return Problem(
        kind="in_turn",
        message=f"the step on {first.host.text} has to end before that on {second.host.text} is started in "
        f"line {line}, and waits for it to begin",
        observed=" ".join(w.text for w in step_words)[:80],
        correction="& at the end of that command, and `wait` behind the last one",
        origin=step_words[0].origin,
    )
