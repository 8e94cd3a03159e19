"""A launcher on one host whose processes are more than the GPUs that CUDA_VISIBLE_DEVICES leaves them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Problem, Value
from allaboard.formats.cli_flags import read_flags, words_after_program
from allaboard.formats.python_commands import TORCHRUN_MODULES, TORCHRUN_VALUELESS
from allaboard.formats.shell.script import Process, Script

_ACCELERATE_VALUELESS = frozenset(
    {"multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "use_xpu", "tpu", "ipex", "quiet"}
    | {"debug", "m", "module", "no_python", "same_network", "enable_cpu_affinity"}
)
"""Options of `accelerate launch` without a value (accelerate 0.20 to 1.10, commands/launch.py)."""
_DEVICES = re.compile(r"\d+(?:,\d+)*\Z")


def visible_device_problems(script: Script) -> Iterator[Problem]:
    """Yield a problem for each torchrun or accelerate with more processes on its host than visible GPUs.

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
    if any("gloo" in w.text.lower() for w in process.command):
        return None
    each = _processes_here(process)
    if each is None or each.integer is None or each.integer <= count:
        return None
    return launch_problem(
        each,
        message=f"{each.integer} processes, and CUDA_VISIBLE_DEVICES leaves them {count} "
        f"GPU{'s' if count > 1 else ''}: process {count} finds none of its own",
        correction=f"{each.origin.flag}={count}",
        observed=f"{each.origin.flag} {each.text}, CUDA_VISIBLE_DEVICES={devices.text} [{devices.origin}]",
    )


def _processes_here(process: Process) -> Value | None:
    """Return the option with the number of processes that a launcher starts on its host."""
    arguments = words_after_program(process.command, ("torchrun",), TORCHRUN_MODULES)
    if arguments is not None:
        return read_flags(arguments, TORCHRUN_VALUELESS).values.get("nproc_per_node")
    arguments = words_after_program(process.command, ("accelerate", "accelerate-launch"))
    if arguments is None or any(w.text == "--cpu" for w in arguments):
        return None
    launched = arguments[1:] if arguments and arguments[0].text == "launch" else arguments
    values = read_flags(launched, _ACCELERATE_VALUELESS).values
    # Of several machines it is the number of all their processes.
    return values.get("num_processes") if "num_machines" not in values else None
