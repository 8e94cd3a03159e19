"""Python's tracebacks in logs: which rank raised what, and in which line of the user's code."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from allaboard.analysis.failures.launcher_errors import LAUNCHER_ERRORS, is_launcher_child_error
from allaboard.analysis.log_ends.post_traceback_output import (
    LOGGED_DOUBT,
    OTHER_THREAD_DOUBT,
    WENT_ON_DOUBT,
    has_ended_well,
    is_logged_traceback,
    is_same_stream,
    progress_lines,
)
from allaboard.analysis.log_messages import speaker_rank, strip_rank_label
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Raised, Testimony
from allaboard.formats.dumps import ipython_tracebacks, rich_tracebacks
from allaboard.formats.dumps.learned_prefixes import LOGGED_MARK
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD, Traceback, find_tracebacks

_HOOK = re.compile(r"\[rank\d+\]: ")
"""Begins each line that torch's own excepthook writes; it is called only for exceptions that nothing caught.
"""
MAX_LINES_TO_END = 400
"""Lines before the end of a log within which a traceback counts as how its process ended.

An earlier one was caught and logged. Tracebacks of torch's own hook (``[rank1]:``) always count.
"""
MAX_LINES_TO_TEARDOWN = 12
"""Lines between an exception and another one that freeing the objects of its process raised: the first may
add advice, as those of CUDA do."""
_IGNORED = re.compile(
    r"Exception ignored (?:in|on|from|while)\b|Error in atexit\._run_exitfuncs"
    r"|Task exception was never retrieved"
)
"""Precedes tracebacks that end nothing; asyncio's has a line between."""
_AT_EXIT = "Error in atexit"
"""Begins what the interpreter writes of a handler that failed once its program had ended."""
_SPAWNED = re.compile(r"-- Process (?P<number>\d{1,7}) terminated with the following error:")
"""Precedes the traceback of a process that torch.multiprocessing.spawn started: its number among them."""
_THREAD = re.compile(r"Exception in thread ")
_SCHEDULER = re.compile(r"\[[\d :.-]{8,30}(?: [A-Z]{2,5}\d+)*? TP(\d{1,5})(?: [A-Z]{2,5}\d+)*\] ")
"""Begins what a scheduler of SGLang logs: its place in tensor parallelism is in the name."""
_RELAY = "CheckpointException"
"""Raised by all ranks for what some of them raised, which it quotes."""


_SECOND_TRY = re.compile(
    r"Failed to create placement group '\w+' because name '[^'\n]+' already exists"
)
"""What Ray raises of a task that it runs a second time, if the first try left a placement group behind."""
_FIRST_TRY_ENDED = re.compile(
    r"killed due to memory pressure|A worker died or was killed|worker process has died"
    r"|node has died|Task was killed due to the node running low on memory"
)
"""What Ray logs of the end of that first try."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    boxed = rich_tracebacks.BOX_HEAD in text
    in_notebook = ipython_tracebacks.has_notebook_traceback(text)
    if TRACEBACK_HEAD not in text and not boxed and not in_notebook:
        return None
    logged = {n for n, line in enumerate(text.split("\n")) if line.startswith(LOGGED_MARK)}
    written = [line.rstrip("\r").removeprefix(LOGGED_MARK) for line in text.split("\n")]
    lines = [strip_rank_label(line) for line in written]
    lines = rich_tracebacks.unbox_tracebacks(lines) if boxed else lines
    lines = ipython_tracebacks.to_python_tracebacks(lines) if in_notebook else lines
    all_tracebacks = find_tracebacks(lines)
    quotes_ranks = any(t.rank >= 0 for t in all_tracebacks)
    glimpses: dict[tuple[int, str], Glimpse] = {}
    hook_ends: dict[int, int] = {}
    for number, traceback in enumerate(all_tracebacks):
        if traceback.type in LAUNCHER_ERRORS or is_launcher_child_error(traceback):
            continue  # a launcher's way to say that a child failed
        if traceback.type == _RELAY and quotes_ranks:
            continue
        if _SECOND_TRY.search(traceback.message) and _FIRST_TRY_ENDED.search(text):
            continue
        by_torch_hook = _HOOK.match(written[traceback.begin]) is not None
        if not by_torch_hook and len(lines) - traceback.end > MAX_LINES_TO_END:
            continue
        hook_rank = speaker_rank(written[traceback.begin], -1)
        if by_torch_hook and _is_of_teardown(traceback, hook_ends.get(hook_rank)):
            continue
        if by_torch_hook:
            hook_ends[hook_rank] = traceback.end
        doubt = (
            ""
            if by_torch_hook
            else _reason_to_doubt(
                lines, traceback, all_tracebacks[number + 1 :], by_logger=traceback.begin in logged
            )
        )
        if doubt is None:
            continue
        speaker = speaker_rank(written[traceback.begin], exhibit.rank)
        rank = traceback.rank if traceback.rank >= 0 else speaker
        before_its_end = lines[max(0, traceback.begin - 1) : traceback.end]
        spawned = [m for line in before_its_end if (m := _SPAWNED.match(line)) is not None]
        local_rank = int(spawned[-1]["number"]) if spawned else exhibit.local
        glimpse = _glimpse(exhibit, traceback, rank, doubt, local_rank)
        if rank < 0 and (scheduler := _SCHEDULER.match(lines[traceback.begin])) is not None:
            glimpse = msgspec.structs.replace(glimpse, task=f"scheduler TP {scheduler[1]}")
        key = (rank, "" if rank >= 0 else f"{glimpse.task} {glimpse.raised}")
        if doubt == OTHER_THREAD_DOUBT and key in glimpses:
            continue
        # Of several of one rank, the last is what ended it.
        glimpses[key] = glimpse
    any_certain = any(not g.doubt for g in glimpses.values())
    credible = tuple(g for g in glimpses.values() if not (g.doubt and g.rank < 0 and any_certain))
    return Testimony(glimpses=credible) if credible else None


def _reason_to_doubt(
    lines: Sequence[str], traceback: Traceback, later: Sequence[Traceback], *, by_logger: bool
) -> str | None:
    """Return why the exception may have been caught; "" if nothing says so, None if its process went on.

    ``by_logger``: a logger's prefix stood before each of its lines.
    """
    head = lines[traceback.begin - 1] if traceback.begin else ""
    if _IGNORED.match(head) or (traceback.begin > 1 and _IGNORED.match(lines[traceback.begin - 2])):
        return None
    if later and _is_ignored_copy(lines, traceback, later[0]):
        return None
    if _THREAD.match(head):
        return OTHER_THREAD_DOUBT
    traceback_lines = {n for t in later for n in range(t.begin, t.end)}
    output = progress_lines(
        line
        for n, line in enumerate(lines[traceback.end :], traceback.end)
        if n not in traceback_lines
    )
    # Ray logs what ended a worker of another host.
    from_other_host = any(
        "RayTaskError(" in line for line in lines[traceback.begin : traceback.end]
    )
    preceding = [
        *lines[max(0, traceback.begin - 1) : traceback.begin],
        lines[traceback.begin].partition(TRACEBACK_HEAD)[0],
    ]
    was_logged = any(map(is_logged_traceback, preceding)) and not from_other_host
    if has_ended_well(output) or (output and was_logged):
        return None
    if by_logger and output:
        return f"{WENT_ON_DOUBT}: {output[0][:60]!r} follows it"
    if (
        output
        and lines[traceback.begin].startswith(TRACEBACK_HEAD)
        and is_same_stream(lines[: traceback.begin][-MAX_LINES_TO_END:], output)
    ):
        return f"{WENT_ON_DOUBT}: {output[0][:60]!r} follows it"
    if output:
        return f"more follows it ({output[0][:60]!r}): it was caught, or that was still in a buffer"
    return f"{LOGGED_DOUBT}; nothing follows" if was_logged else ""


def _is_of_teardown(traceback: Traceback, earlier_end: int | None) -> bool:
    """Return True for what a library raised while an exception of the user's code ended its process.

    Python calls the same hook for what C code raises when it frees its objects.
    """
    return (
        traceback.user_frame is None
        and earlier_end is not None
        and traceback.begin - earlier_end <= MAX_LINES_TO_TEARDOWN
    )


def _is_ignored_copy(lines: Sequence[str], traceback: Traceback, following: Traceback) -> bool:
    """Return True if Python ignored the exception: Cython prints it before it says so, and again after."""
    return (
        following.begin == traceback.end + 1
        and _IGNORED.match(lines[traceback.end]) is not None
        and not lines[traceback.end].startswith(_AT_EXIT)
        and (following.type, following.message) == (traceback.type, traceback.message)
    )


def _glimpse(
    exhibit: Exhibit, traceback: Traceback, rank: int, doubt: str, local_rank: int
) -> Glimpse:
    # Who handles the loss of a peer and raises something else fell because of it all the same.
    message = (
        f"{traceback.message} (after {traceback.root_cause})"
        if traceback.root_cause
        else traceback.message
    )
    frames = tuple(reversed(traceback.frames))
    raised = Raised(
        type=traceback.type,
        message=message,
        raised_at=0.0,
        where=traceback.user_frame,
        frames=frames,
    )
    return Glimpse(
        origin=exhibit.place_of_line(traceback.begin),
        rank=rank,
        pid=traceback.pid or exhibit.pid,
        host=traceback.host or exhibit.host,
        raised=raised,
        exit=Exit(ended_at=0.0, code=1),
        doubt=doubt,
        guess=local_rank,
    )


READER = LogReader(read=read_log)
