"""A launcher on one host whose processes are more than the GPUs that CUDA_VISIBLE_DEVICES leaves them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Problem
from allaboard.formats.cli_flags import read_flags, words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES, TORCHRUN_VALUELESS
from allaboard.formats.shell.script import Process, Script

_DEVICES = re.compile(r"\d+(?:,\d+)*\Z")


def visible_device_problems(script: Script) -> Iterator[Problem]:
    """Yield a problem for each torchrun with more processes than visible GPUs.

    A command that names gloo may have as many processes as it likes.
    """
    reported: set[int] = set()
    for step in script.flow:
        for process in step.processes:
            problem = _problem(process)
            if problem is not None and problem.origin.line not in reported:
                reported.add(problem.origin.line)
                yield problem


def _problem(process: Process) -> Problem | None:
    devices = process.environment.variables.get("CUDA_VISIBLE_DEVICES")
    if devices is None or not _DEVICES.match(devices.text):
        return None
    if "CUDA_VISIBLE_DEVICES" in process.environment.opaque:
        return None
    count = len(devices.text.split(","))
    arguments = words_after_program(process.command, ("torchrun",), TORCHRUN_MODULES)
    if arguments is None or any("gloo" in w.text.lower() for w in process.command):
        return None
    each = read_flags(arguments, TORCHRUN_VALUELESS).values.get("nproc_per_node")
    if each is None or each.integer is None or each.integer <= count:
        return None
    return launch_problem(
        each,
        message=f"{each.integer} processes, and CUDA_VISIBLE_DEVICES leaves them {count} "
        f"GPU{'s' if count > 1 else ''}: process {count} finds none of its own",
        correction=f"{each.origin.flag}={count}",
        observed=f"{each.origin.flag} {each.text}, CUDA_VISIBLE_DEVICES={devices.text} [{devices.origin}]",
    )
