"""A snapshot as the page draws it. Every text of a job is neutralised here, and shown as text there. Pure.

The parts that all pages share are built once a snapshot; the table of ranks and the numbers behind the grid
depend on what one page shows. With 100,000 ranks a page is sent a letter and a number per rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from allaboard.faces.watch.activity_marks import MARKS
from allaboard.faces.watch.rank_rows import FILTERS, ORDERS, choose_columns, select_ranks
from allaboard.faces.watch.run_summary import concerns, headline, is_well, place_of, title
from allaboard.faces.web.page_messages import MAX_ROWS, MAX_SEARCH_LENGTH, View
from allaboard.faces.web.wait_groups import wait_groups
from allaboard.facts import Activity, Finding, RankState, Snapshot
from allaboard.feed.build_snapshot import point_of
from allaboard.report.plain_text import clean

MAX_HOSTS = 300
"""Hosts whose resources are listed; those without trouble are left out first."""
MAX_LINKS = 4096
"""Links that are listed."""
MAX_AWAITED = 1000
"""Awaited ranks that the grid marks."""
MAX_SHOWN_FINDINGS = 200
WIDE = 10_000
"""Columns that a table in a browser may take: all of it."""


def legend() -> list[tuple[str, str]]:
    """Return the letter of every activity, with its name."""
    return [(mark.letter, str(activity)) for activity, mark in MARKS.items()]


def activity_letters(ranks: Sequence[RankState]) -> str:
    """Return a letter for each rank."""
    return "".join([MARKS[r.activity].letter for r in ranks])


def members_message(snapshot: Snapshot) -> dict[str, Any]:
    """Return what does not change from snapshot to snapshot: names, ranks and hosts."""
    hosts = sorted({r.host for r in snapshot.ranks})
    numbers = {host: number for number, host in enumerate(hosts)}
    return {
        "kind": "members",
        "names": [clean(r.name) for r in snapshot.ranks],
        "ranks": [r.rank for r in snapshot.ranks],
        "hosts": [clean(h) for h in hosts],
        "host_of": [numbers[r.host] for r in snapshot.ranks],
    }


def shared_parts(snapshot: Snapshot) -> dict[str, Any]:
    """Return what every page shows of a snapshot."""
    run = snapshot.run
    hosts = sorted(snapshot.hosts, key=lambda h: (not h.lost, not _is_nearly_full(h.resources)))
    # While all train, each is awaited for a moment by the fastest: nobody is to be looked at.
    somebody_waits = any(r.activity is Activity.WAITING for r in snapshot.ranks)
    awaited = [
        (i, r.awaited_by) for i, r in enumerate(snapshot.ranks) if somebody_waits and r.awaited_by
    ]
    return {
        "taken_at": snapshot.taken_at,
        "is_well": is_well(snapshot),
        "title": title(snapshot),
        "headline": headline(snapshot),
        "concerns": concerns(snapshot),
        "phase": run.outcome or str(run.phase),
        "job": clean(run.job),
        "run_dir": clean(run.run_dir),
        "elapsed_s": run.elapsed_s,
        "point": point_of(snapshot),
        "letters": activity_letters(snapshot.ranks),
        "awaited": sorted(awaited, key=lambda a: -a[1])[:MAX_AWAITED],
        "waits": wait_groups(snapshot.ranks),
        "hosts": _cleaned(hosts[:MAX_HOSTS]),
        "hosts_left_out": max(0, len(hosts) - MAX_HOSTS),
        "links": _cleaned(snapshot.links[:MAX_LINKS]),
        "links_left_out": max(0, len(snapshot.links) - MAX_LINKS),
        "links_working": snapshot.links_working,
        "servers": _cleaned(snapshot.servers),
        "restarts": _cleaned(run.restarts),
    }


def view_parts(snapshot: Snapshot, view: View) -> dict[str, Any]:
    """Return what one page shows of the ranks."""
    filter_name = view.filter if view.filter in FILTERS else "all"
    order_name = view.order if view.order in ORDERS else "rank"
    shown = select_ranks(
        snapshot.ranks, filter_name, order_name, view.search[:MAX_SEARCH_LENGTH]
    )  # fmt: skip
    columns = choose_columns(snapshot.ranks, WIDE)
    rows = shown[: max(0, min(view.limit, MAX_ROWS))]
    parts: dict[str, Any] = {
        "columns": [c.title for c in columns],
        "rows": [[c.text(r) for c in columns] for r in rows],
        "shown": len(shown),
        "total": len(snapshot.ranks),
        "metric": view.metric,
    }
    if view.metric:
        parts["values"] = [getattr(r, view.metric) for r in snapshot.ranks]
    if 0 <= view.selected < len(snapshot.ranks):
        parts["selected"] = _cleaned(snapshot.ranks[view.selected])
        parts["selected_place"] = place_of(snapshot.ranks[view.selected])
    return parts


def findings_message(snapshot: Snapshot) -> dict[str, Any]:
    """Return the findings."""
    shown = snapshot.findings[:MAX_SHOWN_FINDINGS]
    left_out = snapshot.findings_left_out + len(snapshot.findings) - len(shown)
    return {"kind": "findings", "findings": [_finding(f) for f in shown], "left_out": left_out}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": clean(finding.rule),
        "name": clean(finding.name),
        "severity": finding.severity,
        "certainty": finding.certainty,
        "summary": clean(finding.summary),
        "who": [clean(str(w)) for w in finding.who],
        "evidence": [(clean(e.observed), clean(e.origin)) for e in finding.evidence],
        # The lines of a fix are commands of their own.
        "fix": "\n".join(clean(line) for line in finding.fix.splitlines()),
        "at": finding.at,
        "over": finding.over or "",
        "place": clean(str(finding.where)) if finding.where is not None else "",
    }


def _is_nearly_full(resources: Sequence[Any]) -> bool:
    return any(r.limit and r.used / r.limit >= 0.9 for r in resources)


def _cleaned(value: Any) -> Any:
    """Return the value as lists, dicts and neutralised text."""
    return _clean_all(msgspec.to_builtins(value))


def _clean_all(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _clean_all(item) for key, item in value.items()}
    return [_clean_all(item) for item in value] if isinstance(value, list | tuple) else value
