"""The error that a drop-in raises if the job cannot start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.errors import AllaboardError

if TYPE_CHECKING:
    from allaboard.facts import Finding


class RollCallError(AllaboardError, RuntimeError):
    """The members of the job did not come together; the same on every rank that is alive.

    ``findings`` say who and why (`allaboard.facts.Finding`); the message prints them.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        self.findings = tuple(findings)
        super().__init__(message)


def roll_call_error(run_folder: str, verdict: str) -> RollCallError:
    """Return the error with the findings that the agent noted in its folder ``run_folder``; ``verdict`` is
    the text of its verdict."""
    try:
        from allaboard.diagnosis.logs.run_folder import read_run
        from allaboard.facts import Severity
        from allaboard.report.finding_text import finding_lines

        findings = [f for f in read_run(Path(run_folder)).findings if f.severity is Severity.ERROR]
        lines = [line for f in findings for line in finding_lines(f)]
    except Exception as error:
        findings, lines = [], [f"(what was found could not be read: {error!r})"]
    return RollCallError("\n".join([verdict or "the roll call failed", *lines]), findings)
