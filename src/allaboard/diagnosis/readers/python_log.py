"""Python's tracebacks in logs: who raised what, and in which line of the user's code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.analysis.failures.post_traceback_output import (
    LOGGED,
    OTHER_THREAD,
    WENT_ON,
    ended_well,
    logged,
    same_stream,
    went_on,
)
from allaboard.analysis.log_messages import speaker
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Raised, Testimony
from allaboard.formats.dumps import rich_tracebacks
from allaboard.formats.dumps.python_tracebacks import HEAD, Traceback, tracebacks

_PREFIX = re.compile(r"(?:\x1b\[[0-9;]*m)?\[(?:rank|default|worker)?\s?\d{1,7}\]:?(?:\x1b\[0m)? ?")
_HOOK = re.compile(r"\[rank\d+\]: ")
"""What torch's own excepthook begins each line with: it is asked only for what nobody caught."""
LAST = 400
"""Lines before the end of a log in which a traceback counts as how its process ended: an earlier one
was caught and logged. The one that torch's own hook writes (``[rank1]:``) always does."""
_IGNORED = re.compile(
    r"Exception ignored (?:in|on|from|while)\b|Error in atexit\._run_exitfuncs"
    r"|Task exception was never retrieved"
)
"""What Python writes before a traceback that ends nothing; asyncio's has a line between."""
_THREAD = re.compile(r"Exception in thread ")
_LAUNCHERS = ("ChildFailedError", "ProcessExitedException", "SignalException")


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    boxed = rich_tracebacks.HEAD in text
    if HEAD not in text and not boxed:
        return None
    written = [line.rstrip("\r") for line in text.split("\n")]
    lines = [_bare(line) for line in written]
    lines = rich_tracebacks.unboxed(lines) if boxed else lines
    all_ = tracebacks(lines)
    found: dict[tuple[int, str], Glimpse] = {}
    for number, one in enumerate(all_):
        if one.type in _LAUNCHERS:
            continue  # a launcher's way to say that a child failed
        hook = _HOOK.match(written[one.begin]) is not None
        if not hook and len(lines) - one.end > LAST:
            continue
        doubt = "" if hook else _doubt(lines, one, all_[number + 1 :])
        if doubt is None:
            continue
        rank = speaker(written[one.begin], exhibit.rank)
        glimpse = _glimpse(exhibit, one, rank, doubt)
        key = (rank, "" if rank >= 0 else str(glimpse.raised))
        if doubt == OTHER_THREAD and key in found:
            continue
        # Of several of one rank, the last is what ended it.
        found[key] = glimpse
    sure = any(not g.doubt for g in found.values())
    kept = tuple(g for g in found.values() if not (g.doubt and g.rank < 0 and sure))
    return Testimony(glimpses=kept) if kept else None


def _bare(line: str) -> str:
    """Without the label of a launcher."""
    label = _PREFIX.match(line)
    return line[label.end() :] if label is not None else line


def _doubt(lines: Sequence[str], one: Traceback, later: Sequence[Traceback]) -> str | None:
    """Why it may have been caught, "" where nothing speaks for it; None where its process went on."""
    head = lines[one.begin - 1] if one.begin else ""
    if _IGNORED.match(head) or (one.begin > 1 and _IGNORED.match(lines[one.begin - 2])):
        return None
    if _THREAD.match(head):
        return OTHER_THREAD
    own = {n for t in later for n in range(t.begin, t.end)}
    said = went_on(line for n, line in enumerate(lines[one.end :], one.end) if n not in own)
    # Ray logs what ended a worker of another host.
    remote = any("RayTaskError(" in line for line in lines[one.begin : one.end])
    before = [*lines[max(0, one.begin - 1) : one.begin], lines[one.begin].partition(HEAD)[0]]
    caught = any(map(logged, before)) and not remote
    if ended_well(said) or (said and caught):
        return None
    if said and lines[one.begin].startswith(HEAD) and same_stream(lines[: one.begin][-LAST:], said):
        return f"{WENT_ON}: {said[0][:60]!r} follows it"
    if said:
        return f"more follows it ({said[0][:60]!r}): it was caught, or that was still in a buffer"
    return f"{LOGGED}; nothing follows" if caught else ""


def _glimpse(exhibit: Exhibit, one: Traceback, rank: int, doubt: str) -> Glimpse:
    # Who handles the loss of a peer and raises something else fell because of it all the same.
    message = f"{one.message} (after {one.first})" if one.first else one.message
    frames = tuple(reversed(one.frames))
    raised = Raised(type=one.type, message=message, at=0.0, where=one.where, frames=frames)
    return Glimpse(
        origin=exhibit.place(one.begin),
        rank=rank,
        pid=exhibit.pid,
        host=exhibit.host,
        raised=raised,
        exit=Exit(at=0.0, code=1),
        doubt=doubt,
        guess=exhibit.local,
    )


READER = LogReader(read=read_log)
