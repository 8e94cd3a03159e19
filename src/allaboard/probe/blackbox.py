"""The black box: one memory-mapped file per member, written by its probe, read from outside.

The agent reads it while the member runs, is stopped, is blocked in native code with or without
the GIL, or is dead. The file is allocated in full before it is mapped (a full file system under a
mapping is a SIGBUS) and lives in memory (/dev/shm). How it is laid out is in `layout`.
"""

from __future__ import annotations

import mmap
import os
import threading
from threading import get_ident
from time import monotonic

from .event_fields import BoxFields, SlotFields
from .layout import (
    AGENT,
    AGENT_AT,
    ASIDE,
    ASIDES_AT,
    GROUPS_AT,
    HEADER,
    KEPT,
    KEPT_AT,
    MAGIC,
    NUMBER,
    NUMBER_AT,
    OP,
    SIZE,
    SLOT_BYTES,
    SLOTS,
    SLOTS_AT,
    STATE,
    STATE_AT,
    TEXTS,
    THREAD,
    THREAD_AT,
    VERSION,
    read_text,
    typed_views,
    write_text,
)

NO_LOSS = float("nan")


class Box(BoxFields):
    """Writes one black box. Never called by more than one process; threads have slots.

    ``map`` is the mapped file, ``ident`` the main thread. ``input`` and ``sync`` are seconds of the step that
    lasts now: in which the main thread waited for data, and in collectives. ``loss`` is the last finite loss
    that was seen, NaN for none; it is written with the next step. ``longs``, ``doubles`` and ``ints`` are
    the map as numbers, see `layout.typed_views`; ``main_slot`` is the main thread's.
    """

    def __init__(self, path: str, signum: int = 0, stack_fd: int = -1) -> None:
        """Creates the file at ``path``; raises OSError where there is no room or no right."""
        self.path = path
        # Reentrant: a signal handler of the program runs on top of whatever the main thread does, a
        # text half written included, and may come here again.
        self._writing = threading.RLock()
        self.rounds = 0
        started = start_ticks(os.getpid())
        # After an execve the agent still has this file mapped: it is written on, not replaced.
        own_map = _own_box(path, started)
        hidden = path + ".new"
        if own_map is None:
            self.map = _allocate(hidden)
        else:
            self.map = own_map
            self._reset()
        self.longs, self.doubles, self.ints = typed_views(self.map)
        self.attach(self.map)
        HEADER.pack_into(
            self.map, 0, MAGIC, VERSION, os.getpid(), started, monotonic(),
            threading.main_thread().ident or 0, signum, stack_fd,
        )  # fmt: skip
        self.steps = 0
        self.input = 0.0
        self.sync = 0.0
        self.loss = NO_LOSS
        self.all_input = 0.0
        self.all_sync = 0.0
        self.phase_code = 0
        self._numbers = (-1, -1, 0, -1, -1)
        self._checkpoint_counts = [-1, -1]
        self._generation = 0
        self._local = threading.local()
        # Slot 0 is the main thread's for good, and the first that a reader looks at.
        self._free = list(range(SLOTS - 1, 0, -1))
        self.ident = threading.main_thread().ident or 0
        self.main_slot = self._slot(0, self.ident)
        self.main_slot.main = True
        if own_map is None:
            # Only whole boxes are ever seen under the name that the agent looks for.
            os.rename(hidden, path)

    def _reset(self) -> None:
        """Forgets what the program told that this one replaced (execve); ``rounds`` are its inits."""
        self.rounds = STATE.unpack_from(self.map, STATE_AT)[3]
        # What the agent writes stays: its record lies below STATE_AT, and the verdict is none of
        # these texts. Those are emptied under their sequence lock: the agent may be reading.
        self.map[STATE_AT : TEXTS["detail"][0]] = bytes(TEXTS["detail"][0] - STATE_AT)
        self.map[GROUPS_AT:] = bytes(SIZE - GROUPS_AT)
        for name in ("detail", "identity", "raised", "declared"):
            self.text(name, "")

    def phase(self, code: int, round_: int, now: float | None = None) -> None:
        """Records that the member reached this phase of this round of init."""
        self._generation += 1
        self.phase_code = code
        STATE.pack_into(
            self.map, STATE_AT, self._generation, code, now or monotonic(), round_,
            self._generation,
        )  # fmt: skip

    def number(self, value: int) -> None:
        """The number that the framework itself gave to a step that is done."""
        first_number, last_number, falls, high, low = self._numbers
        if value == last_number:
            return
        if first_number < 0:
            first_number = value
        elif value < last_number:
            falls, high, low = falls + 1, last_number, value
        self._numbers = first_number, value, falls, high, low
        self._generation += 1
        NUMBER.pack_into(
            self.map,
            NUMBER_AT,
            self._generation,
            first_number,
            value,
            falls,
            high,
            low,
            self._generation,
        )

    def count_checkpoint(self, read: bool) -> None:
        """A checkpoint was written, or one was read."""
        self._checkpoint_counts[read] = self.steps
        self._generation += 1
        KEPT.pack_into(
            self.map, KEPT_AT, self._generation, *self._checkpoint_counts, self._generation
        )

    def begin_aside(self, kind: int, more: int = 1) -> None:
        """The main thread begins a checkpoint or an evaluation; with 0 ``more``, it goes on with one."""
        offset = ASIDES_AT + kind * ASIDE.size
        count, _, _, seconds = ASIDE.unpack_from(self.map, offset)
        ASIDE.pack_into(self.map, offset, count + more, 1, monotonic(), seconds)

    def end_aside(self, kind: int, less: int = 0) -> None:
        """It has ended it; ``less`` of those that were begun count for nothing, as they failed."""
        offset = ASIDES_AT + kind * ASIDE.size
        count, _, since, seconds = ASIDE.unpack_from(self.map, offset)
        ASIDE.pack_into(self.map, offset, count - less, 0, 0.0, seconds + monotonic() - since)

    def slot(self) -> Slot | None:
        """This thread's slot; None when all are taken."""
        slot: Slot | None
        ident = get_ident()
        if ident == self.ident:
            slot = self.main_slot
            return slot
        try:
            slot = self._local.slot
        except AttributeError:
            try:
                # Without a lock: this pop() and append() in `_SlotReturn` are atomic.
                index = self._free.pop()
            except IndexError:
                self._local.slot = None
                return None
            slot = self._local.slot = self._slot(index, ident)
            # Nothing announces the end of a thread; what is in its threading.local is dropped then.
            self._local.back = _SlotReturn(self._free, index)
        return slot

    def called(self) -> str:
        """The operation that this thread has entered last; "" where it has entered none."""
        slot = getattr(self._local, "slot", None)
        if slot is None or slot.count == slot.count_before:
            return ""
        name: bytes = OP.unpack_from(self.map, slot.offset)[5]
        return name.rstrip(b"\0").decode("utf-8", "replace")

    def _slot(self, index: int, thread: int) -> Slot:
        offset = SLOTS_AT + index * SLOT_BYTES
        THREAD.pack_into(self.map, offset + THREAD_AT, thread)
        slot = Slot(self, offset)
        # Of an earlier thread: what was counted stays counted.
        slot.count_before, _, slot.spent = OP.unpack_from(self.map, offset)[:3]
        slot.count = slot.count_before
        return slot

    def text(self, name: str, value: str) -> None:
        """Replaces one text; what does not fit is cut at the end."""
        with self._writing:
            write_text(self.map, name, value)

    def agent(self) -> tuple[float, int, int]:
        """Return what the agent wrote: its heartbeat (s), the rounds that are let through, its
        verdict."""
        heard, let_through, verdict = AGENT.unpack_from(self.map, AGENT_AT)
        return heard, let_through, verdict

    def verdict(self) -> str:
        """The text that the agent left for this member's user."""
        return read_text(self.map, "verdict") or ""


def mapped(path: str) -> bool:
    """Return True if another interpreter of this very process has its box there: the file exists
    and is mapped here. After an execve it is mapped no more."""
    if not os.path.exists(path):
        return False
    try:
        with open("/proc/self/maps", "rb") as file:
            return os.fsencode(path) in file.read()
    except OSError:
        return False


def _own_box(path: str, started: int) -> mmap.mmap | None:
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
    # execve keeps the pid and the start time; a file that an earlier process of this pid left has
    # other start ticks.
    magic, version, pid, ticks = HEADER.unpack_from(box, 0)[:4]
    return box if (magic, version, pid, ticks) == (MAGIC, VERSION, os.getpid(), started) else None


def _allocate(path: str) -> mmap.mmap:
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        # All pages now, where a full file system is an OSError: at a later write through the map it
        # would be a SIGBUS that ends the user's program.
        os.posix_fallocate(fd, 0, SIZE)
        return mmap.mmap(fd, SIZE)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


class _SlotReturn:
    """Gives a slot back when its thread ends, and with it what was the thread's own."""

    __slots__ = ("_free", "_index")

    def __init__(self, free: list[int], index: int) -> None:
        self._free = free
        self._index = index

    def __del__(self) -> None:
        self._free.append(self._index)


class Slot(SlotFields):
    """The operation that one thread is inside of. Nested calls count as the outermost.

    ``spent``: seconds inside, in all; ``count_before``: what threads before this one have counted.
    A collective's hook does by itself what `enter` and `leave` do.
    """

    __slots__ = ("count_before", "offset")

    def __init__(self, box: Box, offset: int) -> None:
        self.attach(box.map)
        self.offset = offset
        self.index = offset // 8
        self.name = b""
        self.since = 0.0
        self.spent = 0.0
        self.count = self.count_before = 0
        self.depth = 0
        self.main = False


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: field 22 of /proc/PID/stat, proc(5)."""
    with open("/proc/%d/stat" % pid, "rb") as file:
        # Field 2, the command's name, may hold blanks and parentheses: only the last ")" ends it.
        return int(file.read().rpartition(b")")[2].split()[19])
