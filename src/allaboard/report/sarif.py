"""Findings as SARIF 2.1.0 (OASIS Static Analysis Results Interchange Format)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from allaboard.facts import Finding

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(
    findings: Sequence[Finding], folder: Path, rule_page: Callable[[str], str] = lambda code: ""
) -> str:
    """Return a log of one run with its rules and results.

    Paths are made relative to ``folder`` where they can be; ``rule_page`` returns the page of the rule with
    this code, or "" if there is none.
    """
    from allaboard import __version__

    codes = list(dict.fromkeys(f.rule for f in findings))
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "allaboard",
                        "semanticVersion": __version__,
                        "rules": [_rule(code, findings, rule_page(code)) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, codes.index(f.rule), folder) for f in findings],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(code: str, findings: Sequence[Finding], page: str) -> dict[str, Any]:
    example = next(f for f in findings if f.rule == code)
    page = page or example.summary
    title = page.partition("\n")[0]
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in example.name.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[example.severity]},
    }


def _result(finding: Finding, index: int, folder: Path) -> dict[str, Any]:
    evidence = "; ".join(map(str, finding.evidence))
    text = f"{finding.summary}\nwhy: {evidence}\ndo: {finding.fix}"
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "properties": {"certainty": str(finding.certainty)},
    }
    if finding.where is not None:
        location: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.where.file, folder)}}
        if finding.where.line:
            region = {"startLine": finding.where.line}
            if finding.where.column:
                region["startColumn"] = finding.where.column
            location["region"] = region
        result["locations"] = [{"physicalLocation": location}]
    return result


def _uri(file: str, folder: Path) -> str:
    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(folder):
            return path.as_uri()
        path = path.relative_to(folder)
    return quote(path.as_posix())
