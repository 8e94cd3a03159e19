"""The ranks on the page: a cell for each, and a line for those that matter. Pure."""

from __future__ import annotations

import msgspec

from allaboard.facts import Activity, RankState, Snapshot
from allaboard.feed.run_record import RunRecord

MAX_CELLS = 2048
"""Cells of the grid; of more ranks the odd ones are shown, and the others counted."""
MAX_LINES = 64
"""Lines of the table; the ranks that findings are about come first."""
USUAL = frozenset((Activity.TRAINING, Activity.SERVING, Activity.DONE, Activity.WAITING))
"""Activities of ranks that are left out first."""


class RankCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the grid."""

    rank: RankState
    """The rank."""
    is_awaited: bool
    """True if others wait for it."""


class RankLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table: where the rank stood, and how it ended."""

    name: str
    """Its process."""
    rank: int
    """Its rank; -1 if not known."""
    host: str
    """Its host; "" if all are on one."""
    pid: int
    """Its pid."""
    activity: Activity
    """What it did at the time of the picture."""
    step: int
    """Steps that it had done."""
    step_s: float | None
    """Median duration of its steps (s)."""
    loss: str
    """Its last loss; "" if not known."""
    operation: str
    """The operation with others that it was in; "" for none."""
    location: str
    """The line of the user's code where it stood; "" if not known."""
    waits_for: str
    """Whom it waited for; "" for nobody."""
    memory_nbytes: int
    """Resident memory at its highest; 0 if not known."""
    end: str
    """How it ended; "" if it lives or nobody knows."""
    is_named: bool
    """True if a finding is about it."""
    reasons: str
    """Why it stands out; "" if it does not."""


def rank_cells(snapshot: Snapshot) -> tuple[tuple[RankCell, ...], int]:
    """Return the cells, and how many ranks have none."""
    ranks = snapshot.ranks
    if len(ranks) > MAX_CELLS:
        ranks = tuple(r for r in ranks if r.activity not in USUAL or r.awaited_by)[:MAX_CELLS]
    cells = tuple(RankCell(rank=r, is_awaited=bool(r.awaited_by)) for r in ranks)
    return cells, len(snapshot.ranks) - len(cells)


def rank_lines(record: RunRecord) -> tuple[tuple[RankLine, ...], int]:
    """Return the lines, and how many ranks have none."""
    picture = record.fault_picture or record.snapshot
    last_states = {(r.host, r.pid): r for r in record.snapshot.ranks}
    picture_processes = {(r.host, r.pid) for r in picture.ranks}
    # Ranks of other hosts' folders, or of a later round, are in the last picture only.
    ranks = [*picture.ranks, *(r for key, r in last_states.items() if key not in picture_processes)]
    named_processes = {(w.host, w.pid) for f in record.findings for w in f.who}
    peaks = {
        (w.host, w.pid): w.peak_memory_nbytes
        for w in (record.report.workers if record.report is not None else ())
    }
    reasons = dict(record.course.notable)
    if len(ranks) > MAX_LINES:
        places = {name: number for number, name in enumerate(reasons)}
        ranks.sort(
            key=lambda r: (
                (r.host, r.pid) not in named_processes,
                places.get(r.name, len(places)),
                not r.awaited_by,
                r.activity in USUAL,
            )
        )
        shown = ranks[:MAX_LINES]
    else:
        shown = sorted(ranks, key=lambda r: (r.rank < 0, r.rank, r.name))
    has_hosts = len({r.host for r in ranks}) > 1
    lines = tuple(
        _line(
            rank,
            last_states.get((rank.host, rank.pid), rank),
            peaks.get((rank.host, rank.pid), 0),
            (rank.host, rank.pid) in named_processes,
            has_hosts,
            reasons.get(rank.name, ()),
        )
        for rank in shown
    )
    return lines, len(ranks) - len(lines)


def _line(
    rank: RankState,
    last_state: RankState,
    peak_nbytes: int,
    is_named: bool,
    has_hosts: bool,
    reasons: tuple[str, ...],
) -> RankLine:
    more = rank.waits_for_count - len(rank.waits_for)
    waits_for = ", ".join(rank.waits_for) + (f" and {more} more" if more > 0 else "")
    file = rank.file.rpartition("/")[2]
    location = f"{file}:{rank.line} in {rank.function}" if rank.file else ""
    return RankLine(
        name=rank.name,
        rank=rank.rank,
        host=rank.host if has_hosts else "",
        pid=rank.pid,
        activity=rank.activity,
        step=max(rank.step, last_state.step),
        step_s=rank.step_s if rank.step_s is not None else last_state.step_s,
        loss=f"{last_state.loss:.4g}" if last_state.loss is not None else last_state.loss_text,
        operation=rank.operation,
        location=location,
        waits_for=waits_for,
        memory_nbytes=max(peak_nbytes, rank.memory_nbytes),
        end=last_state.end,
        is_named=is_named,
        reasons=", ".join(reasons),
    )
