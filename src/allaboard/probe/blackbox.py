"""The black box: one memory-mapped file per member, written by its probe, read from outside.

The agent reads it while the member runs, is stopped, is blocked in native code with or without
the GIL, or is dead. The file is allocated in full before it is mapped (a full file system under a
mapping is a SIGBUS) and lives in memory (/dev/shm). Layout, little endian, version 3:

====== ======= ==============================================================================
offset size    content
====== ======= ==============================================================================
0      128     header: magic, version, pid, start ticks, birth, main thread, signal and fd of stacks
128    64      written by the agent: its heartbeat (s), rounds let through, verdict (0 none, 1 end)
192    64      phase, since (s), round of init
256    64      steps done, time of the last (s)
320    512     times (s) of the last 64 steps, a ring indexed by step number
1024   2048    16 thread slots of 128: operations entered, since (s), inside, group (1...), number
               in the group, name; at 112 of a slot: the thread; at 120: seconds inside in all
4096   61440   texts: detail, identity, declared, raised, verdict; each has a sequence lock
65536  153600  12 groups of 12800: calls, time of the last (s), digest; at 48: the first call whose
               order proves nothing (0 none); at 64: round of init, size, own rank in it, name; at
               160: its ranks; at 512: a ring of the last 1024 calls, indexed by number: digest
               up to it, digest of the places up to it, signature
219136 49152   512 signatures of 96, a ring indexed by number: number, hash of what all ranks must
               share, elements, root, place, operation, reduce operation, dtype, shape
268288 32768   128 places of 256: line, function, file
301056 1024    of the last 64 steps, a ring indexed by step number: seconds in which the main thread
               waited for data, and in collectives
302080 64      the values that backward began from: how many, how many not finite in a row, the step
               of the first of these, its value
302592 8192    8 loops over data of 1024: see `LOOP` and `BATCH`
310784 1024    64 checks of parameters of 16, a ring indexed by number: step, parameter, digest
311808 16      seconds of all steps in which the main thread waited for data, and for other members
311824 64      checkpoints and evaluations of the main thread: see `ASIDE`
312320 64      the framework's own numbers of steps: see `NUMBER`
312384 32      checkpoints: steps that were done when the last was written, and when one was read (-1: none)
====== ======= ==============================================================================

Small records carry their generation at both ends; a reader that sees two different ones reads again.
Times are CLOCK_MONOTONIC, which all processes of a host share.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from time import monotonic

MAGIC = b"ALBOARD\0"
VERSION = 3
SIZE = 327680
SUFFIX = ".box"
RING = 64
SLOTS = 16
NAME_BYTES = 64

HEADER = struct.Struct("<8sIIQdQIi")
AGENT = struct.Struct("<dII")
STATE = struct.Struct("<IIdII")
STEP = struct.Struct("<QQdQ")
OP = struct.Struct("<QdIIQ%dsQ" % NAME_BYTES)
INSIDE = struct.Struct("<I")
THREAD = struct.Struct("<Q")
TIME = struct.Struct("<d")
TEXT = struct.Struct("<II")

AGENT_AT = 128
STATE_AT = 192
STEP_AT = 256
RING_AT = 320
SLOTS_AT = 1024
SLOT_BYTES = 128
THREAD_AT = 112
SPENT_AT = 120
TEXTS = {  # name: (offset, bytes)
    "detail": (4096, 512),
    "identity": (4608, 3584),
    "raised": (8192, 8192),
    "verdict": (16384, 8192),
    "declared": (24576, 40960),
}

CALL = struct.Struct("<QdIQ")
ENTRY = struct.Struct("<III")
UNORDERED = struct.Struct("<Q")
GROUP = struct.Struct("<III64s")
SIGNATURE = struct.Struct("<IIQiI24s8s14s24s")
PLACE = struct.Struct("<I60s188s")

GROUPS = 12
GROUPS_AT = 65536
GROUP_BYTES = 12800
UNORDERED_AT, ABOUT_AT, RANKS_AT, CALLS_AT = 48, 64, 160, 512
RANKS_BYTES = 256
CALLS = 1024
SIGNATURES = 512
SIGNATURES_AT = 219136
SIGNATURE_BYTES = 96
PLACES = 128
PLACES_AT = 268288
PLACE_BYTES = 256

PACE = struct.Struct("<dd")
PACE_AT = 301056
LOSS = struct.Struct("<QIQdQ")
LOSS_AT = 302080
LOOP = struct.Struct("<IIII256sI")
"""Generation, passes begun, the last that is over, its batches, the place (file, line and function in
lines), generation. A pass goes once through a loader; passes count from 1."""
BATCHES = struct.Struct("<II")
"""Pass and batches so far in it, at 288 of a loop."""
BATCHES_AT = 288
BATCH = struct.Struct("<IIiIQ")
"""One sampled batch: pass, number in it (1...), rows, digest, steps done before it. A ring of the last
samples from 320 of a loop."""
SAMPLES_AT, SAMPLES = 320, 8
LOOPS, LOOP_BYTES = 8, 1024
LOOPS_AT = 302592
CHECK = struct.Struct("<QII")
CHECKS = 64
CHECKS_AT = 310784
SPENT_TOTALS = struct.Struct("<dd")
SPENT_TOTALS_AT = 311808
ASIDE = struct.Struct("<IIdd8x")
"""How many were begun, inside of one (1) or not, since when (s), seconds in those that are over."""
ASIDES_AT = 311824
CHECKPOINT, EVALUATION = 0, 1
NUMBER = struct.Struct("<QqqqqqQ")
"""Generation; the first and the last number that the framework gave to a step; how often they went back;
the number before they last did, and the one after; generation."""
NUMBER_AT = 312320
KEPT = struct.Struct("<QqqQ")
KEPT_AT = 312384


class Box:
    """Writes one black box. Never called by more than one process; threads have slots.

    ``input`` and ``sync`` are seconds of the step that lasts now: in which the main thread waited for
    data, and in collectives.
    """

    def __init__(self, path: str, signum: int = 0, stack_fd: int = -1) -> None:
        """Creates the file at ``path``; raises OSError where there is no room or no right."""
        self.path = path
        self._writing = threading.RLock()
        self.rounds = 0
        started = start_ticks(os.getpid())
        found = _mine(path, started)
        hidden = path + ".new"
        if found is None:
            self._map = _allocate(hidden)
        else:
            self._map = found
            self._reset()
        HEADER.pack_into(
            self._map, 0, MAGIC, VERSION, os.getpid(), started, monotonic(),
            threading.main_thread().ident or 0, signum, stack_fd,
        )  # fmt: skip
        self.steps = 0
        self.input = 0.0
        self.sync = 0.0
        self.all_input = 0.0
        self.all_sync = 0.0
        self.phase_code = 0
        self._numbers = (-1, -1, 0, -1, -1)
        self._kept = [-1, -1]
        self._generation = 0
        self._local = threading.local()
        self._free = iter(range(1, SLOTS))
        if found is None:
            # Only whole boxes are ever seen under the name that the agent looks for.
            os.rename(hidden, path)

    def _reset(self) -> None:
        """Forgets what the program told that this one replaced (execve); ``rounds`` are its inits."""
        self.rounds = STATE.unpack_from(self._map, STATE_AT)[3]
        self._map[STATE_AT : TEXTS["detail"][0]] = bytes(TEXTS["detail"][0] - STATE_AT)
        self._map[GROUPS_AT:] = bytes(SIZE - GROUPS_AT)
        for name in ("detail", "identity", "raised", "declared"):
            self.text(name, "")

    def phase(self, code: int, round_: int, now: float | None = None) -> None:
        """Records that the member reached this phase of this round of init."""
        self._generation += 1
        self.phase_code = code
        STATE.pack_into(
            self._map, STATE_AT, self._generation, code, now or monotonic(), round_,
            self._generation,
        )  # fmt: skip

    def step(self) -> None:
        """Counts one finished step."""
        self.steps = n = self.steps + 1
        now = monotonic()
        STEP.pack_into(self._map, STEP_AT, n, n, now, n)
        TIME.pack_into(self._map, RING_AT + (n % RING) * 8, now)
        PACE.pack_into(self._map, PACE_AT + (n % RING) * 16, self.input, self.sync)
        self.all_input += self.input
        self.all_sync += self.sync
        SPENT_TOTALS.pack_into(self._map, SPENT_TOTALS_AT, self.all_input, self.all_sync)
        self.input = self.sync = 0.0

    def number(self, value: int) -> None:
        """The number that the framework itself gave to a step that is done."""
        first, last, falls, high, low = self._numbers
        if value == last:
            return
        if first < 0:
            first = value
        elif value < last:
            falls, high, low = falls + 1, last, value
        self._numbers = first, value, falls, high, low
        self._generation += 1
        NUMBER.pack_into(
            self._map, NUMBER_AT, self._generation, first, value, falls, high, low, self._generation
        )

    def kept(self, read: bool) -> None:
        """A checkpoint was written, or one was read."""
        self._kept[read] = self.steps
        self._generation += 1
        KEPT.pack_into(self._map, KEPT_AT, self._generation, *self._kept, self._generation)

    def begin_aside(self, kind: int) -> None:
        """The main thread begins a checkpoint or an evaluation."""
        at = ASIDES_AT + kind * ASIDE.size
        count, _, _, seconds = ASIDE.unpack_from(self._map, at)
        ASIDE.pack_into(self._map, at, count + 1, 1, monotonic(), seconds)

    def end_aside(self, kind: int) -> None:
        """It has ended it."""
        at = ASIDES_AT + kind * ASIDE.size
        count, _, since, seconds = ASIDE.unpack_from(self._map, at)
        ASIDE.pack_into(self._map, at, count, 0, 0.0, seconds + monotonic() - since)

    def slot(self) -> Slot | None:
        """This thread's slot; None when all are taken."""
        slot: Slot | None
        try:
            slot = self._local.slot
        except AttributeError:
            main = threading.current_thread() is threading.main_thread()
            index = 0 if main else next(self._free, None)
            slot = None if index is None else Slot(self._map, SLOTS_AT + index * SLOT_BYTES)
            if slot is not None:
                slot.main = main
            if index is not None:
                at = SLOTS_AT + index * SLOT_BYTES + THREAD_AT
                THREAD.pack_into(self._map, at, threading.get_ident())
            self._local.slot = slot
        return slot

    def text(self, name: str, value: str) -> None:
        """Replaces one text; what does not fit is cut at the end."""
        with self._writing:
            write_text(self._map, name, value)

    def agent(self) -> tuple[float, int, int]:
        """What the agent wrote: its heartbeat (s), rounds let through, verdict."""
        heard, let_through, verdict = AGENT.unpack_from(self._map, AGENT_AT)
        return heard, let_through, verdict

    @property
    def map(self) -> mmap.mmap:
        """The mapped file, for the writer of the calls."""
        return self._map

    def verdict(self) -> str:
        """The text that the agent left for this member's user."""
        return read_text(self._map, "verdict") or ""


def _mine(path: str, started: int) -> mmap.mmap | None:
    """The box that this very process made before it executed another program; else None."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_size != SIZE:
            return None
        box = mmap.mmap(fd, SIZE)
    finally:
        os.close(fd)
    magic, version, pid, ticks = HEADER.unpack_from(box, 0)[:4]
    return box if (magic, version, pid, ticks) == (MAGIC, VERSION, os.getpid(), started) else None


def _allocate(path: str) -> mmap.mmap:
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(fd, 0, SIZE)
        return mmap.mmap(fd, SIZE)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


class Slot:
    """What one thread is inside of. Nested calls count as the outermost."""

    __slots__ = ("_inside", "_map", "_offset", "_since", "_spent", "count", "depth", "main")

    def __init__(self, map_: mmap.mmap, offset: int) -> None:
        self._map = map_
        self._offset = offset
        self._inside = offset + 16
        self._since = 0.0
        self._spent = 0.0
        self.count = 0
        self.depth = 0
        self.main = False

    def enter(self, name: bytes, group: int = 0, number: int = 0, now: float = 0.0) -> None:
        """Enters an operation, the ``number``-th of this group (1..., 0 for none)."""
        self.depth += 1
        if self.depth == 1:
            self.count = n = self.count + 1
            self._since = now = now or monotonic()
            OP.pack_into(self._map, self._offset, n, now, 1, group, number, name, n)

    def leave(self, name: bytes) -> None:
        """Leaves it again."""
        self.depth -= 1
        if self.depth == 0:
            INSIDE.pack_into(self._map, self._inside, 0)
            self._spent = spent = self._spent + monotonic() - self._since
            TIME.pack_into(self._map, self._offset + SPENT_AT, spent)


def write_text(map_: mmap.mmap, name: str, value: str) -> None:
    """Replaces one text under its sequence lock; what does not fit is cut. One writer a text."""
    offset, room = TEXTS[name]
    data = value.encode("utf-8", "replace")[: room - TEXT.size]
    start = offset + TEXT.size
    # Even: an exception out of a signal's handler may have ended a writer half-way.
    lock = TEXT.unpack_from(map_, offset)[0] & ~1
    TEXT.pack_into(map_, offset, lock + 1, len(data))
    map_[start : start + len(data)] = data
    TEXT.pack_into(map_, offset, lock + 2, len(data))


def read_text(map_: mmap.mmap, name: str) -> str | None:
    """One text of a box; None while it is being written."""
    offset, room = TEXTS[name]
    for _ in range(4):
        lock, length = TEXT.unpack_from(map_, offset)
        if lock % 2 or length > room - TEXT.size:
            continue
        data = bytes(map_[offset + TEXT.size : offset + TEXT.size + length])
        if TEXT.unpack_from(map_, offset)[0] == lock:
            return data.decode("utf-8", "replace")
    return None


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: field 22 of /proc/PID/stat, proc(5)."""
    with open("/proc/%d/stat" % pid, "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])
