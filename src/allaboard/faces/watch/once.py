"""One look at a run, as text or as JSON, for scripts."""

from __future__ import annotations

from allaboard.faces.watch.rank_rows import ORDERS, cells, choose_columns, header, select_ranks
from allaboard.faces.watch.run_summary import active_findings, concerns, headline, is_well, title
from allaboard.facts import RankState, Snapshot
from allaboard.report.finding_text import finding_lines
from allaboard.report.json_text import indented_json

MAX_SHOWN_RANKS = 32
"""Ranks in the table; beyond that, those with something to see come first and the others are counted."""


def snapshot_json(snapshot: Snapshot) -> str:
    """Return the snapshot as one JSON document."""
    return indented_json(snapshot)


def snapshot_text(snapshot: Snapshot, width: int, colour: bool = False) -> str:
    """Return the snapshot as text: errors first."""
    lines = [title(snapshot), headline(snapshot), *concerns(snapshot)]
    findings = active_findings(snapshot)
    for finding in findings:
        lines += finding_lines(finding, colour, width=width)
    resolved = len(snapshot.findings) - len(findings)
    if resolved:
        lines.append(f"{resolved} resolved finding{'s' if resolved > 1 else ''}")
    if snapshot.findings_left_out:
        lines.append(f"{snapshot.findings_left_out} more findings are in the journal")
    if is_well(snapshot) and not findings:
        lines.append("nothing is wrong as far as allaboard can see")
    if snapshot.ranks:
        lines += ["", *_rank_lines(snapshot.ranks, width)]
    return "\n".join(lines) + "\n"


def _rank_lines(ranks: tuple[RankState, ...], width: int) -> list[str]:
    shown = select_ranks(ranks, "all", "urgency", "")[:MAX_SHOWN_RANKS]
    shown.sort(key=ORDERS["rank"])
    columns = choose_columns(ranks, width)
    lines = [header(columns), *(" ".join(cells(rank, columns)) for rank in shown)]
    hidden = len(ranks) - len(shown)
    more = [f"... and {hidden} more ranks"] if hidden else []
    return [*(line.rstrip() for line in lines), *more]
