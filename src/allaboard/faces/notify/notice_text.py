"""What people read of an incident: who, where, why, what to do, and where the report is. Pure."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.faces.notify.incidents import Notice, NoticeKind
from allaboard.facts import Finding, RankState, Snapshot
from allaboard.report.plain_text import clean

MAX_TITLE_LENGTH = 160
MAX_SHOWN_FINDINGS = 5
"""Findings that are shown in full."""
MAX_EVIDENCE = 3
"""Observations shown of each."""
MAX_LINE_LENGTH = 600


class MessageText(NamedTuple):
    """A message for people."""

    title: str
    """One line."""
    body: str
    """The rest."""


def message_text(notice: Notice, withheld: int = 0) -> MessageText:
    """Return the message; ``withheld`` is how many before it were not sent."""
    run = notice.snapshot.run
    lines = []
    fault_snapshot = notice.fault_snapshot or notice.snapshot
    for finding in notice.findings[:MAX_SHOWN_FINDINGS]:
        lines += _finding_lines(finding, fault_snapshot, notice.kind)
    left_out = len(notice.findings) - MAX_SHOWN_FINDINGS
    if left_out > 0:
        lines.append(f"{left_out} more findings are in the report.")
    if notice.times > 1:
        lines.append(f"It has come {notice.times} times in this run.")
    lines += ["", f"Job     {run.job} on {run.host}, {run.framework or 'framework not known'}, "
              f"{run.world_size} ranks, {_duration(run.elapsed_s)}, step {run.step}"]  # fmt: skip
    if run.command:
        lines.append(f"Command {' '.join(run.command)}")
    lines.append(
        f"Report  {run.host}:{run.run_dir}/{'report.html' if run.outcome else 'journal.jsonl'}"
    )
    if not run.outcome:
        lines.append(f"Look    on {run.host}: allaboard watch {run.run_dir}")
    if withheld:
        lines.append(
            f"{withheld} messages before this one were not sent, to keep their number bounded."
        )
    return MessageText(
        _cut(_title(notice), MAX_TITLE_LENGTH),
        "\n".join(_cut(line, MAX_LINE_LENGTH) for line in lines),
    )


def _title(notice: Notice) -> str:
    run = notice.snapshot.run
    first_summary = notice.findings[0].summary if notice.findings else ""
    if notice.kind is NoticeKind.RESOLVED:
        state = "completed" if run.outcome else f"goes on at step {run.step}"
        return f"allaboard: {run.job} {state}; resolved: {first_summary}"
    if notice.kind is NoticeKind.ENDED:
        return f"allaboard: {run.job} has ended ({run.outcome}): {run.reason or first_summary}"
    more = f" (and {len(notice.findings) - 1} more)" if len(notice.findings) > 1 else ""
    return f"allaboard: {run.job}: {first_summary}{more}"


def _finding_lines(finding: Finding, snapshot: Snapshot, kind: NoticeKind) -> list[str]:
    likely = "" if finding.certainty == "certain" else f" ({finding.certainty})"
    lines = [f"{finding.rule} {finding.name}: {finding.summary}{likely}"]
    if kind is NoticeKind.RESOLVED:
        return lines
    names = {w.name for w in finding.who}
    if finding.who:
        shown = ", ".join(map(str, finding.who[:4]))
        more = f" and {len(finding.who) - 4} more" if len(finding.who) > 4 else ""
        lines.append(f"  who    {shown}{more}")
    places = [_place(r) for r in snapshot.ranks if r.name in names and r.file]
    if finding.where is not None:
        places.insert(0, str(finding.where))
    if places:
        lines.append(f"  where  {'; '.join(dict.fromkeys(places[:3]))}")
    lines += [f"  why    {evidence}" for evidence in finding.evidence[:MAX_EVIDENCE]]
    if finding.fix:
        lines.append(f"  do     {finding.fix}")
    return lines


def _place(state: RankState) -> str:
    function = f" in {state.function}" if state.function else ""
    return f"{state.file}:{state.line}{function}"


def _duration(seconds: float) -> str:
    minutes = int(seconds) // 60
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _cut(line: str, length: int) -> str:
    line = clean(line)
    return line if len(line) <= length else line[: length - 1] + "…"
