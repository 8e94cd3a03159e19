"""Findings as workflow commands of GitHub Actions, which shows them on the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.facts import Finding

_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def workflow_commands(findings: Sequence[Finding]) -> str:
    """Return one ``::error file=…,line=…::message`` a finding.

    The form is that of the page "Workflow commands for GitHub Actions", its escapes included.
    """
    return "".join(_workflow_command(f) + "\n" for f in findings)


def _workflow_command(finding: Finding) -> str:
    parts = []
    if finding.where is not None:
        parts.append(f"file={_property(finding.where.file)}")
        parts += [f"line={finding.where.line}"] if finding.where.line else []
        parts += [f"col={finding.where.column}"] if finding.where.column else []
    parts.append(f"title={_property(f'{finding.rule} {finding.name}')}")
    evidence = "; ".join(map(str, finding.evidence))
    message = f"{finding.summary}\nwhy: {evidence}\ndo: {finding.fix}"
    return f"::{_LEVELS[finding.severity]} {','.join(parts)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
