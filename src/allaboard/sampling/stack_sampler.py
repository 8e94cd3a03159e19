"""Takes the stacks of processes: by faulthandler if they stand still and can answer, else by
py-spy."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stacks.external_wait import awaits_pool, joins_process
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Frame, Grip, Stack
from allaboard.facts.stack import ENDED_CHILD
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_pyspy, parse_spied_threads
from allaboard.hosts import proc
from allaboard.hosts.awaited.awaited_end import awaited_end
from allaboard.hosts.awaited.failed_processes import failed_processes
from allaboard.hosts.awaited.full_pipe import child_at_full_pipe
from allaboard.hosts.awaited.peers import awaited_peers
from allaboard.hosts.blocked_syscall import describe_blocked_syscall
from allaboard.hosts.socket_bytes import socket_bytes
from allaboard.hosts.thread_stats import thread_stats
from allaboard.protocol.events import StackSampled
from allaboard.sampling.enclosing_loops import enclosing_loops
from allaboard.sampling.faulthandler_stacks import ask_faulthandler
from allaboard.sampling.flight_recorder_client import FlightRecorderClient
from allaboard.sampling.gil_sampler import GilSampler
from allaboard.sampling.loader_sampler import ChildPlaces, LoaderSampler
from allaboard.sampling.lock_owners import (
    awaits_external_answer,
    is_feeding_generator,
    lock_holds,
    other_user_frames,
)
from allaboard.sampling.pool_threads import blocked_pool_threads
from allaboard.sampling.pyspy import run_pyspy
from allaboard.sampling.rpc_functions import polling_cpu, rpc_functions
from allaboard.sampling.source_lines import with_source

MAX_COMMAND_LENGTH = 120
"""Characters of a child's command that are kept."""
_HELPER = "multiprocessing.resource_tracker"
"""A child that every program with processes of its own has, and that answers nothing."""


async def sample_stack(
    pid: int,
    box: OpenBox | None,
    now: float,
    grips: GilSampler | None = None,
    recorders: FlightRecorderClient | None = None,
    loaders: LoaderSampler | None = None,
) -> StackSampled:
    """Sample the main thread of ``pid`` at ``now`` (CLOCK_MONOTONIC s); no frames if none could be
    had.

    ``cpu`` and ``io`` count the process and all below it, without the stacks that it wrote for us.
    ``grips``, ``recorders`` and ``loaders`` remember earlier samples.
    """
    sample, _ = await sample_or_reason(pid, box, now, grips, recorders, loaders)
    return sample


async def sample_or_reason(
    pid: int,
    box: OpenBox | None,
    now: float,
    grips: GilSampler | None = None,
    recorders: FlightRecorderClient | None = None,
    loaders: LoaderSampler | None = None,
) -> tuple[StackSampled, str]:
    """Return what `sample_stack` does, and "" or why it has no frames."""
    grip = await grips.sample_gil(pid) if grips is not None else None
    stacks, by, trouble = await _stacks(pid, box)
    below = proc.descendants_of(pid)
    own_stat = proc.read_stat(pid)
    frames = with_source(stacks[0])
    spot = classify_stack(Stack(frames=frames, taken_at=0.0))
    at_lock = spot is Spot.LOCK
    waits_for_threads = spot in (Spot.LOCK, Spot.LEAVING)
    other_threads = [with_source(s) for s in stacks[1:]]
    functions = rpc_functions(other_threads)
    fed_by = next((s for s in other_threads if is_feeding_generator(s)), ())
    sampled = await _children_at_work(pid, spot, frames, loaders)
    sample = StackSampled(
        pid=pid,
        sampled_at=now,
        frames=frames,
        by=by,
        cpu=sum(s.cpu_s for s in below.values())
        + (own_stat.cpu_s if own_stat is not None else 0.0),
        io=sum(proc.io_bytes(p) for p in (pid, *below))
        - (box.dumped_bytes if box is not None else 0),
        traffic=socket_bytes((pid, *below)),
        children=awaited_children(pid, frames, below),
        stopped=stopped_children(below),
        threads=lock_holds([frames, *other_threads]) if at_lock else (),
        other_threads=other_user_frames([frames, *other_threads]) if waits_for_threads else (),
        blocked_call=describe_blocked_syscall(pid)
        if own_stat is not None and own_stat.state == "D"
        else "",
        grip=_with_source(grip) if grip is not None else None,
        input_frames=fed_by,
        loaders=sampled.places,
        lone_waiters=sampled.lone_waiters,
        blocked_pool=blocked_pool_threads([frames, *other_threads]) if at_lock else 0,
        loops=enclosing_loops(frames),
        failed=failed_processes(pid, below)
        if spot in (Spot.CHILD, Spot.ANSWER, Spot.LOCK, Spot.LEAVING)
        else (),
        idle_pool=await _idle_pool(pid, [frames, *other_threads], loaders),
        awaited_pids=_awaited_pids(pid, frames),
        awaited_end=awaited_end(pid),
        unread_child=child_at_full_pipe(pid, below) if spot is Spot.CHILD else 0,
        asks_other_process=at_lock and any(map(awaits_external_answer, other_threads)),
        rpc_functions=functions,
        polling_cpu=polling_cpu(thread_stats(pid).values()) if functions else 0.0,
        recorded=await recorders.read_record(box, now)
        if recorders is not None and box is not None
        else (),
    )
    return sample, "" if frames else trouble or "py-spy: no Python frames"


async def _children_at_work(
    pid: int, spot: Spot, frames: tuple[Frame, ...], loaders: LoaderSampler | None
) -> ChildPlaces:
    """Return where the processes are that load the data for which it waits, or for whose end it waits."""
    if loaders is None or spot not in (Spot.DATA, Spot.CHILD):
        return ChildPlaces()
    with_programs = spot is Spot.CHILD and not joins_process(frames)
    return await loaders.sample_loaders(pid, with_programs)


async def _idle_pool(
    pid: int, stacks: list[tuple[Frame, ...]], loaders: LoaderSampler | None
) -> int | None:
    """Return how many processes of its pool are idle, all of them, while it waits for a result; 0 if a thread
    of the program may still make tasks; None if that is not sampled now."""
    if loaders is None or not awaits_pool(stacks[0]):
        return None
    if other_user_frames(stacks):
        return 0
    count = await loaders.count_idle_pool(pid)
    return None if count < 0 else count


def _awaited_pids(pid: int, frames: tuple[Frame, ...]) -> tuple[int, ...]:
    """Return who could send what the process waits to read, if its place may be such a wait, and of one thing
    alone."""
    spot = classify_stack(Stack(frames=frames, taken_at=0.0))
    awaited = awaited_peers(pid) if spot in (Spot.ANSWER, Spot.USER) else ()
    return awaited[0].pids if len(awaited) == 1 else ()


def stopped_children(below: dict[int, proc.ProcStat]) -> tuple[int, ...]:
    """Return the stopped ones among these processes (at most 8); not those that a debugger holds,
    as py-spy does."""
    return tuple(pid for pid, process_stat in below.items() if process_stat.state == "T")[:8]


async def _stacks(pid: int, box: OpenBox | None) -> tuple[list[tuple[Frame, ...]], str, str]:
    """Return the stacks, the main thread's first, what took them, and why they could not be taken.

    A process that runs at this moment is asked last: faulthandler walks frames while they change,
    which has crashed processes (python/cpython#116008); py-spy only reads.
    """
    running = proc.is_on_cpu(pid)
    answered = await ask_faulthandler(box) if box is not None and not running else []
    trouble = ""
    if not answered:
        output, trouble = await run_pyspy(pid)
        if main := parse_pyspy(output, pid):
            other_threads = (t.frames for t in parse_spied_threads(output) if t.thread_id != pid)
            return [main, *(f for f in other_threads if f != main)], "py-spy", ""
        answered = await ask_faulthandler(box) if box is not None and running else []
    return (answered, "faulthandler", "") if answered else ([()], "py-spy", trouble)


def _with_source(grip: Grip) -> Grip:
    return msgspec.structs.replace(grip, frames=with_source(grip.frames))


def awaited_children(
    pid: int, frames: tuple[Frame, ...], below: dict[int, proc.ProcStat]
) -> tuple[tuple[int, str], ...]:
    """Return the process's living children with their commands, if it stands in a wait that may be
    for one of them. For a wait for an answer also those that have ended: the one that should
    answer may be among them."""
    spot = classify_stack(Stack(frames=frames, taken_at=0.0))
    if spot not in (Spot.CHILD, Spot.ANSWER):
        return ()
    children = {child: stat for child, stat in below.items() if stat.ppid == pid}
    ended = [
        (c, ENDED_CHILD)
        for c, stat in children.items()
        if stat.state == "Z" and spot is Spot.ANSWER
    ]
    live = [
        (c, " ".join(proc.command_line(c))[:MAX_COMMAND_LENGTH])
        for c, stat in children.items()
        if stat.state != "Z"
    ]
    return tuple([*ended, *((c, command) for c, command in live if _HELPER not in command)][:8])
