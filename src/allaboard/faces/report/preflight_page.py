"""A preflight as one HTML page, in the form of the other reports."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard import __version__
from allaboard.faces.report.numbered_findings import number_findings
from allaboard.faces.report.page_environment import page_environment
from allaboard.facts import Preflight
from allaboard.formats.redacted_records import redact_record
from allaboard.report.preflight import link_matrix, member_rows, preflight_verdict

FINE_STATES = ("aboard", "waits", "ok")
UNTESTED_LINKS = ("-", "not tried")
_TONES = {"ok": "well", "failed": "bad", "interrupted": "warned"}


def render_preflight_page(preflight: Preflight, rule_pages: Mapping[str, str]) -> str:
    """Return the HTML document. ``rule_pages``: the page of each rule that made a finding, as Markdown."""
    safe = redact_record(preflight)
    has_links = bool(safe.links) or safe.usual is not None
    return (
        page_environment()
        .get_template("preflight.html")
        .render(
            title=f"Preflight: {preflight_verdict(safe)}",
            verdict=preflight_verdict(safe),
            tone=_TONES.get(safe.outcome, "open"),
            preflight=safe,
            findings=number_findings(safe.findings, rule_pages, safe.started),
            member_rows=member_rows(safe),
            link_rows=link_matrix(safe) if has_links else [],
            link_class=_link_class,
            fine_states=FINE_STATES,
            version=safe.allaboard or __version__,
        )
    )


def _link_class(text: str) -> str:
    """Return the colour of a link: none where it was not tested."""
    if text in UNTESTED_LINKS:
        return ""
    return "good" if text in FINE_STATES or text.endswith("MB/s") else "bad"
