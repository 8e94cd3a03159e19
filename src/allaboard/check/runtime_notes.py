"""Findings about the text of a script or an environment, for commands that print them while a job runs."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.check.collect import Gathered, from_environment, from_files
from allaboard.check.run_rules import judge_configuration
from allaboard.facts import Finding, Severity


def script_notes(path: str) -> list[Finding]:
    """Return the CODE family's findings on a script; none if it cannot be read."""
    try:
        scripts = from_files([path]).python_scripts
    except OSError:
        return []
    return judge_configuration(Gathered(python_scripts=scripts), select=("CODE", "CFG04"))


def environment_errors(variables: Mapping[str, str]) -> list[Finding]:
    """Return the errors that `allaboard check` finds in this environment, on this host."""
    findings = judge_configuration(from_environment(variables), select=("CFG",))
    return [f for f in findings if f.severity is Severity.ERROR]
