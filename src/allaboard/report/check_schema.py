"""The published JSON Schema of `check --format json`: docs/schemas/check.json."""

from __future__ import annotations

from allaboard.report.check_report import SCHEMA_VERSION, CheckReport
from allaboard.report.json_schema import json_schema_of


def check_schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of a CheckReport, made from the type itself."""
    return json_schema_of(CheckReport) | {
        "$id": f"allaboard/check/{SCHEMA_VERSION}",
        "title": "What `allaboard check --format json` prints",
    }
