"""Messages that follow from what is known already, or say better what a rank raised. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from allaboard.facts import Evidence, Finding

_BELOW = ("LOG006", "LOG010")
"""A GPU, CUDA or NCCL failed below the code that used it."""
_LINE = 80
"""Characters of an exception's first line by which it is known again in a message."""
_SILENT, _LOST, _CANCELLED = "LOG002", "EXIT005", "EXIT008"


def below(found: Iterable[Finding], spoken: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Where what a rank raised is a known message of what failed below its code, that is told with the line
    where it was raised, and not that the line is to be mended."""
    kept = []
    for one in found:
        what = one.evidence[0].observed if one.rule == "EXIT002" and one.evidence else ""
        at = next((n for n, f in enumerate(spoken) if f.rule in _BELOW and _tells(f, what)), None)
        if at is None:
            kept.append(one)
            continue
        raised = Evidence("raised here", one.evidence[0].origin)
        first, *more = spoken[at].evidence
        evidence = (first, raised, *more)
        spoken[at] = msgspec.structs.replace(spoken[at], who=one.who, evidence=evidence)
    return kept, spoken


def _tells(message: Finding, raised: str) -> bool:
    """Whether this is the line that the exception printed."""
    said = raised.partition(": ")[2].partition("\n")[0].strip()[:_LINE]
    return bool(said) and any(said in e.observed for e in message.evidence)


def silenced(spoken: Iterable[Finding], ended: Iterable[Finding]) -> list[Finding]:
    """Without the lost heartbeats of workers of whose end is told: who has ended sends none."""
    known = {w.index for f in ended for w in f.who if w.rank >= 0}
    return [f for f in spoken if f.rule != _SILENT or not _are(f, known)]


def _are(one: Finding, known: set[int]) -> bool:
    """Whether it is about these workers alone."""
    return bool(one.who) and all(w.job == "worker" and w.index in known for w in one.who)


def cancelled(spoken: Sequence[Finding]) -> list[Finding]:
    """Without the peers that were lost after the job was cancelled, as the lines of one file tell; those that
    were lost before may be why."""
    at = dict(filter(None, (_place(f) for f in spoken if f.rule == _CANCELLED)))
    kept = []
    for one in spoken:
        place = _place(one) if one.rule == _LOST else None
        if place is None or place[1] < at.get(place[0], place[1] + 1):
            kept.append(one)
    return kept


def _place(one: Finding) -> tuple[str, int] | None:
    """The file and line of its first evidence."""
    file, _, line = one.evidence[0].origin.rpartition(":") if one.evidence else ("", "", "")
    return (file, int(line)) if line.isdigit() else None
