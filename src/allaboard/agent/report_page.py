"""Writes ``report.html`` into the run folder once everything else is written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from allaboard.facts import Finding
from allaboard.facts.report import PAGE_NAME


def write_report_page(folder: Path, findings: Iterable[Finding]) -> str:
    """Write the page; return why it was not written, or "".

    The run is over, and its outcome must not depend on a page: any error is returned, none is raised.
    """
    try:
        # Loaded only now: a run that is going on has no use for any of it.
        from allaboard.faces.report.output_formats import render_html
        from allaboard.feed.run_record import read_run_record
        from allaboard.rules.engine.catalogue import rule_pages

        page = render_html(
            read_run_record([folder]), rule_pages({f.rule: f.name for f in findings})
        )
        _write_private(folder / PAGE_NAME, page.encode(errors="replace"))
    except Exception as error:
        return f"{PAGE_NAME} was not written: {error!r}"
    return ""


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that only this user can read; a link in its place is not followed."""
    path.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)
    except OSError:
        # On a full disk an empty page would be all that is left, and say nothing.
        path.unlink(missing_ok=True)
        raise
