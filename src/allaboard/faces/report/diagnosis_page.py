"""The page of a diagnosis: the answer of `allaboard diagnose` as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard import __version__
from allaboard.faces.report.flame_graph import lay_out_stacks
from allaboard.faces.report.numbered_findings import number_findings
from allaboard.faces.report.page_environment import page_environment
from allaboard.facts import Crowd, Diagnosis
from allaboard.facts.rank_sets import describe_ranks
from allaboard.report.what_happened import main_finding

MAX_SHOWN_FINDINGS = 100
MAX_SHOWN_LINES = 200
"""Lines of a list, and places; further ones are left out."""
MAX_RANKS_LENGTH = 120
"""Characters of a set of ranks before it is cut."""


def render_diagnosis_page(diagnosis: Diagnosis, rule_pages: Mapping[str, str]) -> str:
    """Return the HTML document. ``rule_pages``: the page of each rule that made a finding, as Markdown."""
    main = main_finding(diagnosis.findings)
    template = page_environment().get_template("diagnosis.html")
    return template.render(
        title=f"Diagnosis: {main.summary if main is not None else 'nothing was found'}",
        diagnosis=diagnosis,
        main=main,
        findings=number_findings(diagnosis.findings[:MAX_SHOWN_FINDINGS], rule_pages),
        findings_left_out=max(0, len(diagnosis.findings) - MAX_SHOWN_FINDINGS),
        places=[(crowd, _ranks(crowd)) for crowd in diagnosis.crowds[:MAX_SHOWN_LINES]],
        flame_graph=lay_out_stacks(diagnosis.tree),
        max_lines=MAX_SHOWN_LINES,
        version=diagnosis.allaboard or __version__,
    )


def _ranks(crowd: Crowd) -> str:
    ranks = crowd.ranks
    if len(ranks) > MAX_RANKS_LENGTH:
        ranks = ranks[:MAX_RANKS_LENGTH].rpartition(",")[0] + ",…"
    return describe_ranks(ranks, crowd.count - len(crowd.others), crowd.others)
