"""What `allaboard check` says of one public file, as rows of a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allaboard.check.collect import from_files
from allaboard.check.run_rules import judge_configuration


def finding_rows(
    path: Path, name: str, kind: str, reasons: Mapping[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """Return a row for each finding; ``name`` is the file's under the key ``kind``, ``reasons`` what a person
    found who read it, by name and rule."""
    return [
        {
            kind: name,
            "rule": finding.rule,
            "severity": str(finding.severity),
            "line": finding.where.line if finding.where else 0,
            "summary": finding.summary,
            "read": reasons.get((name, finding.rule), ""),
        }
        for finding in judge_configuration(from_files([str(path)]))
    ]
