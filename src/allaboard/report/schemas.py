"""The published JSON Schemas, from the types: ``python -m allaboard.report.schemas DIR [--check]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from allaboard.facts import FEED_VERSION, Report
from allaboard.feed.messages import Message, Request
from allaboard.report.check_report import SCHEMA_VERSION, CheckReport
from allaboard.report.diagnosis import diagnosis_schema
from allaboard.report.json_schema import json_schema_of
from allaboard.report.preflight import preflight_schema

SCHEMAS: dict[str, Callable[[], object]] = {
    "report.schema.json": partial(json_schema_of, Report),
    "diagnosis.schema.json": diagnosis_schema,
    "preflight.schema.json": preflight_schema,
    "check.json": lambda: check_schema(),
    "feed.schema.json": lambda: feed_schema(),
}
"""Name of each schema's file, and the function that makes its content."""


def check_schema() -> dict[str, object]:
    """Return the JSON Schema of what `check --format json` prints."""
    return json_schema_of(CheckReport) | {
        "$id": f"allaboard/check/{SCHEMA_VERSION}",
        "title": "What `allaboard check --format json` prints",
    }


def feed_schema() -> dict[str, object]:
    """Return the JSON Schema of one line of the feed, in either direction."""
    return json_schema_of(Message | Request) | {
        "$id": f"allaboard/feed/{FEED_VERSION}",
        "title": "One line of the feed of a run",
    }


def main(arguments: list[str]) -> int:
    """Write or check the folder; return 0 if all is well."""
    folder = Path(next((a for a in arguments if not a.startswith("-")), "docs/schemas"))
    current = {name: json.dumps(make(), indent=2) + "\n" for name, make in SCHEMAS.items()}
    if "--check" in arguments:
        written = {n: (folder / n).read_text() if (folder / n).exists() else "" for n in current}
        stale = [n for n in current if current[n] != written[n]]
        if stale:
            print(f"stale in {folder}: {', '.join(stale)}; run: make docs", file=sys.stderr)
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in current.items():
        (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
