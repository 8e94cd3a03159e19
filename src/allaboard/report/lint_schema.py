"""The published JSON Schema of `check --format json`: docs/schemas/check.json."""

from __future__ import annotations

from allaboard.report.lint import SCHEMA_VERSION, CheckReport
from allaboard.report.published import published


def schema() -> dict[str, object]:
    """JSON Schema 2020-12 of a CheckReport, made from the type itself."""
    return published(CheckReport) | {
        "$id": f"allaboard/check/{SCHEMA_VERSION}",
        "title": "What `allaboard check --format json` prints",
    }
