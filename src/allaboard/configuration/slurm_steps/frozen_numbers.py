"""A task's own number that is the same for every task of a step: the shell of the batch script has filled it
in, or srun exports one for all."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import OPAQUE, Material, Problem
from allaboard.formats.shell.source_lines import command_text, with_late_variable
from allaboard.formats.shell.word import TASK_NUMBERS

_NUMBER_MARK = rf"{OPAQUE}(?P<number>SLURM_(?:PROCID|NODEID|LOCALID)){OPAQUE}"
_NUMBER_NAME = (
    r"(?:rank|index|(?:process|task|node|worker|machine|host|proc)[-_]?id|devices?|gpus?)"
)
_NUMBERED_FLAG = re.compile(
    rf"(?P<flag>--?[\w.-]*{_NUMBER_NAME})(?:[= ][\"']?){_NUMBER_MARK}(?![\w.])", re.IGNORECASE
)
_NUMBERED_NAME = re.compile(
    rf"(?<![\w-])(?P<name>[\w.]*{_NUMBER_NAME})=[\"']?{_NUMBER_MARK}(?![\w.])"
    rf"|(?<![\w-])(?P<devices>CUDA_VISIBLE_DEVICES)=[\"']?{OPAQUE}(?P<number2>SLURM_LOCALID){OPAQUE}",
    re.IGNORECASE,
)
_TASK_VARIABLES = ("RANK", "LOCAL_RANK", "NODE_RANK", "JAX_PROCESS_ID", "CUDA_VISIBLE_DEVICES")
_OWN_NUMBER = {"RANK": "$SLURM_PROCID", "JAX_PROCESS_ID": "$SLURM_PROCID"}
"""Variables that tell a task apart, and the one by which Slurm numbers it."""


def frozen_numbers(step: StartedStep, material: Material) -> Iterator[Problem]:
    """Yield a problem for each number that every task of a step of several tasks gets alike."""
    if not _has_several_tasks(step):
        return
    has_launcher = step.launcher_words is not None
    yield from _exported_numbers(step, has_launcher)
    yield from _quoted_variables(step, material)
    yield from _filled_in_arguments(step, material)
    if has_launcher:
        return  # torchrun sets these itself
    for name in _TASK_VARIABLES:
        number = material.partly.get(name, "").strip(OPAQUE)
        # A step that sets it again does so in its own shell.
        if number in TASK_NUMBERS and not re.search(rf"\b{name}=", step.text):
            yield launch_problem(
                step.flags.program_words[0],
                message=f"{name} is set in the batch script, where ${number} is 0: every task of the step "
                "has that number",
                correction=f"srun bash -c 'export {name}=${number}; …'",
                observed=f"export {name}=${number}, before srun",
            )


def _has_several_tasks(step: StartedStep) -> bool:
    """Return True if the step, or the job that it belongs to, asks for more than one task or node."""
    request = step.request
    if request.tasks is not None and request.tasks.integer == 1:
        return False
    values = (request.nodes, request.tasks, request.tasks_per_node)
    return any(v is not None and (v.integer or 0) > 1 for v in values)


def _corrected_step(step: StartedStep, material: Material, number: str, setting: str) -> str:
    """Return the step's own line with the number left to the shell of each task."""
    line = command_text(material.text, step.flags.program_words[0].origin.line)
    separator = "" if not setting or setting.endswith("=") else "="
    return with_late_variable(line, number) or (
        f"srun bash -c '… {setting}{separator}${number} …'   # single quotes: each task's own"
    )


def _filled_in_arguments(step: StartedStep, material: Material) -> Iterator[Problem]:
    """Yield a problem for ``--node_rank $SLURM_PROCID`` and its like outside of single quotes."""
    is_elastic = "c10d" in step.text  # c10d gives the numbers of the nodes itself
    matches = [*_NUMBERED_FLAG.finditer(step.text), *_NUMBERED_NAME.finditer(step.text)]
    for match in matches:
        groups = match.groupdict()
        setting = groups.get("flag") or groups.get("name") or groups.get("devices") or ""
        number = groups.get("number") or groups.get("number2") or ""
        if is_elastic and re.fullmatch(r"--(?:node|machine)[-_]rank", setting):
            continue
        if setting.startswith("--") and f" {setting}" not in f" {step.text}":
            continue
        yield launch_problem(
            step.flags.program_words[0],
            message=f"{setting} is ${number} as the batch script has it: 0, for every task of the step",
            correction=_corrected_step(step, material, number, setting),
            observed=f"{setting}=${number}, outside of the step",
        )
    words = step.flags.program_words
    for previous, word in itertools.pairwise(words):
        number = word.text.strip(OPAQUE)
        is_argument = previous.text.endswith(".py") or (
            not previous.text.startswith("-") and ".py" in step.text.partition(OPAQUE)[0]
        )
        if word.text == f"{OPAQUE}{number}{OPAQUE}" and number in TASK_NUMBERS and is_argument:
            yield launch_problem(
                word,
                message=f"the script gets ${number} as the batch script has it: 0, in every task of the step",
                correction=_corrected_step(step, material, number, ""),
                observed=f"${number}, an argument outside of single quotes",
            )


def _quoted_variables(step: StartedStep, material: Material) -> Iterator[Problem]:
    """Yield a problem for ``bash -c "RANK=…; … $RANK"``: in double quotes the batch script's own shell has
    filled it in."""
    for argument in step.flags.program_words:
        for name in sorted(set(re.findall(rf"{OPAQUE}(\w+){OPAQUE}", argument.text))):
            mark = f"{OPAQUE}{name}{OPAQUE}"
            # NAME=$NAME hands on what the submitter's own environment may have.
            passed = re.search(rf"\b{name}=[\"']?{mark}", argument.text)
            sets = re.search(rf"\b{name}=", argument.text)
            if passed or sets is None or mark not in argument.text[sets.end() :]:
                continue
            if name in material.variables or name in material.opaque:
                continue
            yield launch_problem(
                argument,
                message=f"${name} in double quotes is the batch script's, which has none: what the step sets "
                "is not what it takes",
                correction=f"srun bash -c '… ${name} …'   # single quotes, or \\${name}",
                observed=f"{name}=… and ${name} in one pair of double quotes",
            )


def _exported_numbers(step: StartedStep, has_launcher: bool) -> Iterator[Problem]:
    """Yield a problem for one number that every task gets: ``srun --export=ALL,RANK=0``."""
    exported = step.flags.values.get("export")
    if exported is None or has_launcher:
        return
    text = step.flags.raw_texts.get("export", exported.text)
    for part in text.split(","):
        name, _, number = part.partition("=")
        own_number = _OWN_NUMBER.get(name)
        is_fixed = number.isdecimal() or number.strip(OPAQUE) in TASK_NUMBERS
        if own_number is None or not is_fixed:
            continue
        if step.flags.program_words[0].text.endswith(".sh") or re.search(rf"\b{name}=", step.text):
            continue  # set again, for each task
        shown = (
            number
            if number.isdecimal()
            else f"${number.strip(OPAQUE)}, which is 0 in the batch script,"
        )
        yield launch_problem(
            exported,
            message=f"{name} is {shown} in every task of the step: --export sets one value for all",
            correction=f"srun bash -c 'export {name}={own_number}; …'   # single quotes: each task's own",
            observed=f"--export={text.replace(OPAQUE, '')}"[:100],
        )
