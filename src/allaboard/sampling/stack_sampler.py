"""Takes the stacks of processes: by faulthandler if they stand still and can answer, else by
py-spy."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import msgspec

from allaboard.analysis.stacks.external_wait import awaits_pool, joins_process
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Frame, Grip, Stack
from allaboard.facts.stack import ENDED_CHILD
from allaboard.formats.dumps.stack_frames import (
    SpiedThread,
    parse_faulthandler,
    parse_pyspy,
    parse_spied_threads,
    parse_threads,
)
from allaboard.hosts import pidfd, proc
from allaboard.hosts.awaited.awaited_end import awaited_end
from allaboard.hosts.awaited.failed_processes import failed_processes
from allaboard.hosts.awaited.full_pipe import child_at_full_pipe
from allaboard.hosts.awaited.peers import awaited_peers
from allaboard.hosts.blocked_syscall import describe_blocked_syscall
from allaboard.hosts.socket_bytes import socket_bytes
from allaboard.hosts.thread_stats import thread_stats
from allaboard.launch import signals
from allaboard.protocol.events import StackSampled
from allaboard.sampling.enclosing_loops import enclosing_loops
from allaboard.sampling.flight_recorder_client import FlightRecorderClient
from allaboard.sampling.gil_sampler import GilSampler
from allaboard.sampling.loader_sampler import LoaderSampler
from allaboard.sampling.lock_owners import (
    awaits_external_answer,
    is_feeding_generator,
    lock_holds,
    other_user_frames,
)
from allaboard.sampling.rpc_functions import polling_cpu, rpc_functions
from allaboard.sampling.source_lines import source_line

FAULTHANDLER_TIMEOUT_S = 0.5
"""Seconds that a process gets to write its stacks."""
MAX_COMMAND_LENGTH = 120
"""Characters of a child's command that are kept."""
_HELPER = "multiprocessing.resource_tracker"
"""A child that every program with processes of its own has, and that answers nothing."""
PYSPY_TIMEOUT_S = 5.0
"""How long py-spy gets."""
EXIT_POLL_S = 0.02
"""Time between two checks whether it has ended, on kernels without pidfd."""


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
        loaders=await loaders.sample_loaders(pid)
        if loaders is not None and (spot is Spot.DATA or joins_process(frames))
        else (),
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
    answered = await _ask_faulthandler(box) if box is not None and not running else []
    trouble = ""
    if not answered:
        output, trouble = await _run_pyspy(pid)
        if main := parse_pyspy(output, pid):
            other_threads = (t.frames for t in parse_spied_threads(output) if t.thread_id != pid)
            return [main, *(f for f in other_threads if f != main)], "py-spy", ""
        answered = await _ask_faulthandler(box) if box is not None and running else []
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
    children = {child: seen for child, seen in below.items() if seen.ppid == pid}
    ended = [
        (c, ENDED_CHILD)
        for c, seen in children.items()
        if seen.state == "Z" and spot is Spot.ANSWER
    ]
    live = [
        (c, " ".join(proc.command_line(c))[:MAX_COMMAND_LENGTH])
        for c, seen in children.items()
        if seen.state != "Z"
    ]
    return tuple([*ended, *(one for one in live if _HELPER not in one[1])][:8])


async def _ask_faulthandler(box: OpenBox) -> list[tuple[Frame, ...]]:
    """Ask the process by its private signal for the stacks of its threads, the main one first.

    Empty if the handler or the file is not ours any more (an exec, a program that closes all its
    files), or if no answer comes.
    """
    # A real-time signal without a handler ends a process: it is sent only to the very process
    # (start time) that has the handler, and only if its descriptor still is our file.
    process_stat = proc.read_stat(box.pid)
    if (
        box.signum == 0
        or process_stat is None
        or process_stat.start_ticks != box.started
        or process_stat.state in "TtZX"
    ):
        return []
    if not proc.has_handler(box.pid, box.signum):
        return []
    # Who handles those on both sides of it, too, handles them all: ours is the program's own by now.
    if proc.has_handler(box.pid, box.signum - 1) and proc.has_handler(box.pid, box.signum + 1):
        return []
    if not proc.points_to(box.pid, box.stack_fd, box.stacks):
        return []
    try:
        # Its descriptor appends (O_APPEND): what it writes next begins the emptied file.
        os.truncate(box.stacks, 0)
        # By pidfd: its pid may be another process's by the time of the signal.
        process = pidfd.open_process(box.pid)
        try:
            signals.send_through_pidfd(process, box.signum)
        finally:
            os.close(process)
    except OSError:
        return []
    try:
        text = await _read_finished_dump(box.stacks)
    except OSError:  # the job ended meanwhile, and its folder is gone
        return []
    box.dumped_bytes += len(text.encode(errors="replace"))
    main = parse_faulthandler(text, box.main_thread)
    # In a backward, the main thread's own frames are the outermost ones of these.
    other_threads = (f for f in parse_threads(text).values() if f != main[len(main) - len(f) :])
    return [main, *other_threads] if main else []


async def _read_finished_dump(file: Path) -> str:
    """Return the dump once it has stopped growing, or what is there after the timeout."""
    size = 0
    for _ in range(int(FAULTHANDLER_TIMEOUT_S / 0.02)):
        await asyncio.sleep(0.02)
        grown = file.stat().st_size
        # Nothing marks the end of a dump: it is over when it has not grown between two looks.
        if grown and grown == size:
            break
        size = grown
    return file.read_text(errors="replace")


async def spy_main_thread(pid: int) -> tuple[tuple[Frame, ...], str]:
    """Return the main thread's frames by py-spy, without pausing the process, and "" or why there
    are none."""
    output, trouble = await _run_pyspy(pid)
    frames = parse_pyspy(output, pid)
    return frames, "" if frames else trouble or "py-spy: no Python frames"


async def spy_with_source(pid: int) -> tuple[tuple[Frame, ...], str]:
    """Return what `spy_main_thread` does, with source lines."""
    frames, trouble = await spy_main_thread(pid)
    return with_source(frames), trouble


async def spy_threads(pid: int) -> tuple[SpiedThread, ...]:
    """Return all Python threads by py-spy, without pausing the process; () if they cannot be had."""
    return parse_spied_threads((await _run_pyspy(pid))[0])


async def spy_with_locals(pid: int) -> bytes:
    """Return py-spy's JSON of all threads with the variables of their functions, without pausing the process;
    empty if it cannot be had."""
    return (await _run_pyspy(pid, "--locals"))[0]


async def _run_pyspy(pid: int, *options: str) -> tuple[bytes, str]:
    """Return what py-spy prints about this process, and what is wrong if it prints nothing."""
    program = find_pyspy()
    if program is None:
        return b"", "py-spy is not installed"
    command = (program, "dump", "--json", "--nonblocking", *options, "--pid", str(pid))
    with _nameless_file() as output, _nameless_file() as errors:
        # Not through asyncio: of a wait that is called off it says that somebody else has reaped the child.
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
            )
        except OSError as error:
            return b"", f"py-spy: {error.strerror}"
        try:
            await asyncio.wait_for(_wait_for_exit(process), PYSPY_TIMEOUT_S)
        except TimeoutError:
            return b"", f"py-spy gave no answer in {PYSPY_TIMEOUT_S:g} s"
        finally:
            # Also where the job has ended, and nobody wants to know any more.
            if process.poll() is None:
                process.kill()
                await _wait_for_exit(process)
                process.wait()
        # The child shares these files' offsets, which are at the end now.
        output.seek(0)
        errors.seek(0)
        error_lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        return output.read(), f"py-spy: {error_lines[0]}" if error_lines else ""


def _nameless_file() -> IO[bytes]:
    """Return a file without a name, in memory if this Python can make one."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("py-spy"), "w+b")
    return tempfile.TemporaryFile()


async def _wait_for_exit(child: subprocess.Popen[bytes]) -> None:
    """Returns once this child has ended."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    try:
        process = pidfd.open_process(child.pid)
    except OSError:  # a kernel, or a sandbox, without that
        while child.poll() is None:
            await asyncio.sleep(EXIT_POLL_S)
        return
    loop.add_reader(process, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


def find_pyspy() -> str | None:
    """Return the py-spy that is installed beside allaboard, else the one in PATH; None if there is
    none."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def with_source(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the frames with source lines for the user's own ones, and for what was compiled from
    them."""
    return tuple(
        Frame(f.file, f.line, f.function, source_line(f.file, f.line))
        if f.is_user or f.is_compiled
        else f
        for f in frames
    )
