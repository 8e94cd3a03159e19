"""Processes that hang now and were not started by us, seen from outside alone."""

from __future__ import annotations

import asyncio
import os

import msgspec

from allaboard import __version__
from allaboard.agent import sampler
from allaboard.catalogue import catalogue
from allaboard.clock import SystemClock
from allaboard.coordinator.events import Looked, Seen
from allaboard.coordinator.record import Record
from allaboard.diagnose import diagnose, stamp
from allaboard.evidence.spot import spot
from allaboard.facts import Diagnosis, Frame, JobView, Member, Phase
from allaboard.hosts import proc
from allaboard.hosts.locks import lock_waits
from allaboard.stacks.places import crowds, groups_of
from allaboard.stacks.tree import merge

LOOKS = 5
BETWEEN = 0.4
"""Seconds between two looks: places that stay the same over all of them are called still."""


class NoSuchProcess(Exception):
    """A pid that is not there; the message says which."""


def expand(pids: list[int]) -> list[int]:
    """Replaces a launcher by the ranks that it started: children whose environment says a rank where
    its own does not. Raises NoSuchProcess."""
    found: list[int] = []
    for pid in pids:
        if proc.stat(pid) is None:
            raise NoSuchProcess(f"no process {pid}; see: ps -fp {pid}")
        own = _identity(pid)
        ranks = [p for p in proc.descendants(pid) if _identity(p) not in (None, own)]
        found += [p for p in (ranks if ranks and own is None else [pid]) if p not in found]
    return found


def diagnosis(pids: list[int]) -> Diagnosis:
    """Who waits in which init or collective, who does not. Raises NoSuchProcess."""
    view, why = asyncio.run(look(expand(pids)))
    found = [stamp(entry, claim) for entry, claim in diagnose(view, catalogue().entries)]
    groups = groups_of(view.members)
    return Diagnosis(
        allaboard=__version__,
        read=tuple(f"pid {m.who.pid}" for m in view.members),
        told=tuple(_member(m, why) for m in view.members),
        crowds=crowds(groups),
        tree=merge(groups),
        findings=tuple(found),
        notes=tuple(f"pid {pid}: no stack: {trouble}" for pid, trouble in why.items()),
        conclusion="" if found else "no finding: " + _why_none(why),
    )


def _member(member: Member, why: dict[int, str]) -> str:
    place = member.stack.user if member.stack is not None else None
    at = f" at {place}" if place is not None else ""
    doing = "stopped" if member.stopped else str(spot(member.stack))
    if member.stack is None:
        doing = f"no stack ({why.get(member.who.pid, 'unknown')})"
    return f"{member.who}: {doing}{at}, {member.cpu * 100:.0f} % of a core"


def _why_none(why: dict[int, str]) -> str:
    if why:
        return "unknown, because not every process could be looked at"
    return (
        "nobody stands still while another waits for it; look again, or with more of the job's pids"
    )


async def look(pids: list[int]) -> tuple[JobView, dict[int, str]]:
    """Looks at all of them several times; the view, and why a process has no stack."""
    clock = SystemClock()
    start = clock.monotonic()
    host = os.uname().nodename
    records = {p: Record(p, i, host, start, _rank(p)) for i, p in enumerate(pids)}
    why: dict[int, str] = {}
    for _ in range(LOOKS):
        now = clock.monotonic()
        spied = await asyncio.gather(*(sampler.spy(p) for p in pids))
        for pid, (frames, trouble) in zip(pids, spied, strict=True):
            _take(records[pid], now, pid, sampler.with_source(frames))
            why[pid] = trouble
        await asyncio.sleep(BETWEEN)
    members = tuple(
        msgspec.structs.replace(r.member(False), phase=Phase.TRAINING) for r in records.values()
    )
    view = JobView(
        now=clock.monotonic(),
        launched=0,
        members=members,
        progress_at=start,
        stall_after=BETWEEN,
        lock_waits=lock_waits(),
    )
    return view, {p: w for p, w in why.items() if w}


def _take(record: Record, now: float, pid: int, frames: tuple[Frame, ...]) -> None:
    seen = proc.stat(pid)
    if seen is None:
        return
    record.see(Seen(pid=pid, worker=record.worker, at=now, state=seen.state, cpu=seen.cpu))
    below = proc.descendants(pid)
    looked = Looked(
        pid=pid,
        at=now,
        frames=frames,
        by="py-spy",
        cpu=seen.cpu + sum(s.cpu for s in below.values()),
        io=sum(proc.io_bytes(p) for p in (pid, *below)),
    )
    record.look(looked)


def _identity(pid: int) -> str | None:
    """What the process's environment says of who it is in a job."""
    names = ("RANK", "TF_CONFIG", "JAX_PROCESS_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
    return next((v for n in names if (v := proc.variable(pid, n)) is not None), None)


def _rank(pid: int) -> int:
    text = _identity(pid) or ""
    if text.isdigit():
        return int(text)
    try:
        task = msgspec.json.decode(text)["task"]
        return int(task["index"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return -1
