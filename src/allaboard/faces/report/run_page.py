"""The page of one run: one HTML file without scripts, fonts or addresses of elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard import __version__
from allaboard.faces.report.flame_graph import lay_out_stacks
from allaboard.faces.report.numbered_findings import number_findings
from allaboard.faces.report.page_environment import page_environment
from allaboard.faces.report.plots import lay_out_plots
from allaboard.faces.report.rank_grid import lay_out_grid
from allaboard.faces.report.rank_plots import lay_out_rank_plots
from allaboard.faces.report.rank_table import RankLine, rank_cells, rank_lines
from allaboard.faces.report.timeline import TimedFinding, lay_out_timeline
from allaboard.facts import Report
from allaboard.feed.run_record import RunRecord
from allaboard.report.phases import phase_lines, step_lines
from allaboard.report.run_summary import closing_finding
from allaboard.report.servers import server_lines
from allaboard.report.what_happened import headline, main_finding, what_happened

MAX_SHOWN_FINDINGS = 100
"""Findings on the page; further ones are counted."""
MAX_SHOWN_ROWS = 64
"""Rows of a table of hosts, links or servers; further ones are counted."""
MAX_MARKS = 40
"""Findings that are marked on the timeline."""


def render_run_page(record: RunRecord, rule_pages: Mapping[str, str]) -> str:
    """Return the HTML document. ``rule_pages``: the page of each rule that made a finding, as Markdown."""
    snapshot, run = record.snapshot, record.snapshot.run
    numbered = number_findings(record.findings[:MAX_SHOWN_FINDINGS], rule_pages, run.started)
    timed = [
        TimedFinding(
            n.number, n.after_s, n.finding.severity, f"{n.finding.rule}: {n.finding.summary}"
        )
        for n in numbered[:MAX_MARKS]
        if n.after_s is not None
    ]
    picture = record.fault_picture
    lines, lines_left_out = rank_lines(record)
    course = record.course
    closing = closing_finding(record.report) if record.report is not None else None
    main = closing or main_finding(record.findings)
    grid = lay_out_grid((picture or snapshot).ranks)
    cells, cells_left_out = rank_cells(picture or snapshot)
    template = page_environment().get_template("run.html")
    return template.render(
        title=f"{run.job}: {headline(snapshot)}",
        headline=headline(snapshot),
        tone=_tone(record),
        sentences=what_happened(snapshot, main),
        main=main,
        record=record,
        snapshot=snapshot,
        run=run,
        findings=numbered,
        findings_left_out=len(record.findings) - len(numbered) + snapshot.findings_left_out,
        timeline=lay_out_timeline(course, timed),
        plots=lay_out_plots(course, [(t.at_s, str(t.number)) for t in timed]),
        picture=picture,
        rank_grid=grid,
        rank_plots=lay_out_rank_plots(
            course.figures, course.points[-1].elapsed_s if course.points else 0.0
        ),
        rank_cells=cells,
        rank_cells_left_out=cells_left_out,
        rank_lines=lines,
        rank_lines_left_out=lines_left_out,
        shows=_columns(lines),
        flame_graph=lay_out_stacks(record.tree),
        time_lines=time_lines(record.report),
        max_rows=MAX_SHOWN_ROWS,
        version=__version__,
    )


def _tone(record: RunRecord) -> str:
    """Return the colour of the headline."""
    run = record.snapshot.run
    if run.outcome == "completed":
        return "well" if not record.findings else "warned"
    return "bad" if run.outcome or run.phase in ("stalled", "ended") else "open"


def _columns(lines: tuple[RankLine, ...]) -> frozenset[str]:
    """Return the columns of the ranks' table in which something stands."""
    names = ("host", "location", "waits_for", "end", "memory_nbytes", "step_s", "loss", "reasons")
    return frozenset(n for n in names if any(getattr(line, n) for line in lines))


def time_lines(report: Report | None) -> tuple[str, ...]:
    """Return where the time went, in the words of the run's last lines."""
    if report is None:
        return ()
    lines = (*step_lines(report), *server_lines(report), *phase_lines(report))
    return tuple(line.strip() for line in lines)
