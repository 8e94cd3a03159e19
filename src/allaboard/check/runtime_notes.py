"""Findings about a script, a command or an environment, for commands that print them while a job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from allaboard.check.collect import (
    Gathered,
    configuration_sources,
    from_environment,
    from_files,
    resolve_material,
)
from allaboard.check.run_rules import judge_configuration
from allaboard.facts import Finding, Material, Severity, Value

_LAUNCHERS = ("accelerate", "deepspeed", "torchrun")
"""Sources of the commands that start ranks of one job by themselves."""


def script_notes(path: str, are_servers_started: bool = False) -> list[Finding]:
    """Return the CODE family's findings on a script; none if it cannot be read. See `ScriptFacts` for
    ``are_servers_started``."""
    try:
        read = from_files([path]).python_scripts
    except OSError:
        return []
    scripts = [msgspec.structs.replace(s, are_servers_started=are_servers_started) for s in read]
    return judge_configuration(Gathered(python_scripts=scripts), select=("CODE", "CFG04"))


def command_notes(command: Sequence[str]) -> list[Finding]:
    """Return what is wrong with a launcher's command by its own flags; none for other programs."""
    words = tuple(Value(word) for word in command)
    material = Material(kind="shell", file="the command", commands=(words,))
    launchers = {n: s for n, s in configuration_sources().items() if n in _LAUNCHERS}
    config = resolve_material("the command", material, launchers)
    return judge_configuration(Gathered([config]), select=("CFG04",))


def environment_errors(variables: Mapping[str, str]) -> list[Finding]:
    """Return the errors that `allaboard check` finds in this environment, on this host."""
    findings = judge_configuration(from_environment(variables), select=("CFG",))
    return [f for f in findings if f.severity is Severity.ERROR]
