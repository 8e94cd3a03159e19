"""Findings as lines for people: the same four parts in the same order for every command.

    error HANG001 stopped: worker 1 is stopped (SIGSTOP or Ctrl-Z) · worker 1 (rank 1, pid 42)
      why  state T (stopped) for 12 s [/proc/42/stat]
      do   kill -CONT 42

What and who, with severity and rule in front; why we think so; what to do.
"""

from __future__ import annotations

from allaboard.facts import Certainty, Finding
from allaboard.report.plain_text import DEFAULT_WIDTH, clean, wrap_clauses, wrap_words

MAX_SHOWN_EVIDENCE = 3
"""Observations that are shown without --verbose."""
MAX_EVIDENCE_LENGTH = 600
"""Characters of evidence that are shown without --verbose."""
MAX_SHOWN_MEMBERS = 4
"""Members that the title of a finding names."""
_COLOURS = {"error": "31", "warning": "33", "info": "36"}
_WHY, _DO, _INDENT = "  why  ", "  do   ", "       "


def finding_lines(
    finding: Finding,
    colour: bool = False,
    verbose: bool = False,
    *,
    width: int = DEFAULT_WIDTH,
    location: bool = False,
    paste: bool = False,
    clock_time: str = "",
) -> list[str]:
    """Return a finding as lines of at most ``width`` columns; a single one if it is resolved.

    ``location`` puts the place in the file in front, as linters do. ``paste`` adds the rest of a fix that has
    several lines; ``verbose`` adds that, all evidence and all members. ``clock_time`` goes in front of all.
    """
    if finding.over is not None:
        return wrap_words(f"{clock_time} {_resolved(finding)}".lstrip(), width, indent="    ")
    # Each part may come from another host's agent
    label = f"{finding.severity} {clean(finding.rule)} {clean(finding.name)}"
    place = f"{clean(str(finding.where))}: " if location and finding.where is not None else ""
    certainty = "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty})"
    members = finding.who if verbose or len(finding.who) == 1 else ()
    who = f" · {', '.join(map(str, members))}" if members else ""
    head = f"{clock_time} {place}{label}: {clean(finding.summary)}{certainty}{clean(who)}"
    lines = wrap_words(head.lstrip(), width, indent="    ")
    if colour:
        # After wrapping, so that the escapes do not count as columns. In a terminal so narrow that the label
        # itself is wrapped, nothing is coloured.
        code = _COLOURS[finding.severity]
        lines[0] = lines[0].replace(label, f"\x1b[1;{code}m{label}\x1b[0m", 1)
    return [*lines, *_why(finding, width, verbose), *_do(finding, width, paste or verbose)]


def finding_title(finding: Finding) -> str:
    """Return ``HANG001 stopped (worker 1)``: the finding in a list of findings."""
    resolved = ["resolved"] if finding.over is not None else []
    names = ", ".join([*(w.name for w in finding.who[:MAX_SHOWN_MEMBERS]), *resolved])
    return clean(f"{finding.rule} {finding.name}" + (f" ({names})" if names else ""))


def _resolved(finding: Finding) -> str:
    until = (finding.over or "")[11:19]
    return (
        f"resolved {clean(finding.rule)} {clean(finding.name)}, true until {clean(until)} UTC: "
        f"{clean(finding.summary)}"
    )


def _why(finding: Finding, width: int, verbose: bool) -> list[str]:
    if not finding.evidence:
        return []
    if verbose:
        lines: list[str] = []
        for evidence in finding.evidence:
            lines += wrap_words(clean(str(evidence)), width, _INDENT if lines else _WHY, _INDENT)
        return lines
    text = "; ".join(clean(str(e)) for e in finding.evidence[:MAX_SHOWN_EVIDENCE])
    if len(text) > MAX_EVIDENCE_LENGTH:
        text = f"{text[:MAX_EVIDENCE_LENGTH].rstrip()} …"
    return wrap_words(text, width, _WHY, _INDENT)


def _do(finding: Finding, width: int, paste: bool) -> list[str]:
    if not finding.fix:
        return []
    first_line, *more = finding.fix.split("\n")
    lines = wrap_clauses(clean(first_line), width, _DO, _INDENT)
    # Text to paste is never wrapped: a manifest's lines must stay as they are.
    return lines + ([f"{_INDENT}{clean(line)}" for line in more] if paste else [])
