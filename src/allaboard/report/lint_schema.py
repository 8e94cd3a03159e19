"""The published JSON Schema of `check --format json`: docs/schemas/check.json."""

from __future__ import annotations

import msgspec

from allaboard.report.lint import SCHEMA_VERSION, CheckReport


def schema() -> dict[str, object]:
    """JSON Schema 2020-12 of a CheckReport, made from the type itself."""
    made = msgspec.json.schema(CheckReport)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"allaboard/check/{SCHEMA_VERSION}",
        "title": "What `allaboard check --format json` prints",
    }
    return {**head, **made}
