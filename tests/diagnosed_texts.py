"""What is found in a text, as someone gives it to `allaboard diagnose` in a file."""

from __future__ import annotations

from pathlib import Path

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding, Severity
from allaboard.rules.engine.catalogue import load_catalogue


def diagnose(folder: Path, text: str, name: str = "job.log") -> list[Finding]:
    """Return the findings in a file of this folder with this name and text."""
    file = folder / name
    file.write_text(text)
    return list(diagnose_paths([file], load_catalogue()).findings)


def errors(folder: Path, *lines: str) -> list[Finding]:
    """Return the errors in a log of these lines."""
    found = diagnose(folder, "\n".join(lines) + "\n")
    return [f for f in found if f.severity is Severity.ERROR]
