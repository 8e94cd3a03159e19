"""A record, or a diagnosis, in every format of `allaboard report`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.faces.report.diagnosis_page import render_diagnosis_page
from allaboard.faces.report.masking import without_hosts
from allaboard.faces.report.run_page import render_run_page
from allaboard.facts import Diagnosis
from allaboard.feed.run_record import RunRecord
from allaboard.formats.redacted_records import redact_record

MAX_PAGE_NBYTES = 2_000_000
"""Size of a page above which its largest parts are made smaller."""


def render_html(record: RunRecord, rule_pages: Mapping[str, str]) -> str:
    """Return the page of a run. Passwords in it are removed."""
    safe = redact_record(record)
    page = render_run_page(safe, rule_pages)
    if len(page.encode(errors="replace")) > MAX_PAGE_NBYTES:
        # Long names and evidence of thousands of ranks: what explains the run stays.
        page = render_run_page(_smaller(safe), rule_pages)
    return page


def render_diagnosis(diagnosis: Diagnosis, rule_pages: Mapping[str, str]) -> str:
    """Return the page of a diagnosis. Passwords in it are removed."""
    return render_diagnosis_page(redact_record(diagnosis), rule_pages)


def hosts_of(record: RunRecord) -> frozenset[str]:
    """Return the names of all hosts of a run, which `--redact` masks."""
    snapshot = record.snapshot
    names = {
        snapshot.run.host,
        *(h.host for h in snapshot.hosts),
        *(r.host for r in snapshot.ranks),
    }
    return frozenset(names | {w.host for f in record.findings for w in f.who})


def mask_run(record: RunRecord) -> RunRecord:
    """Return the record without names and addresses of hosts."""
    return without_hosts(record, hosts_of(record))


def mask_diagnosis(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis without names and addresses of hosts, as far as findings tell them."""
    return without_hosts(diagnosis, {w.host for f in diagnosis.findings for w in f.who})


def _smaller(record: RunRecord) -> RunRecord:
    course = msgspec.structs.replace(record.course, lanes=record.course.lanes[:24])
    snapshot = msgspec.structs.replace(record.snapshot, findings=record.findings[:20])
    return msgspec.structs.replace(
        record, course=course, snapshot=snapshot, notes=record.notes[:100], log_ends=()
    )
