"""The published JSON Schema of `check --format json`: docs/schemas/check.json.

``python -m allaboard.report.lint_schema FOLDER`` writes it there; the test says when it is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from allaboard.report.lint import SCHEMA_VERSION, CheckReport

NAME = "check.json"


def schema() -> str:
    """JSON Schema 2020-12 of a CheckReport, made from the type itself."""
    made = msgspec.json.schema(CheckReport)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"allaboard/check/{SCHEMA_VERSION}",
        "title": "What `allaboard check --format json` prints",
    }
    return json.dumps({**head, **made}, indent=2) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schemas")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(schema())
