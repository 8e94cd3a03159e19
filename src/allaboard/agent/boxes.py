"""Reads the black boxes of one folder. Whatever a box holds, reading it never fails."""

from __future__ import annotations

import mmap
import os
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from allaboard.agent.box_clock import ahead, timed
from allaboard.agent.calls import CallReader
from allaboard.agent.passes import PassReader
from allaboard.coordinator.events import BoxReading
from allaboard.facts import (
    BOX,
    Check,
    Declared,
    Frame,
    Loss,
    Numbered,
    Op,
    Pace,
    Raised,
    Saves,
    Spent,
)
from allaboard.probe import layout

T = TypeVar("T")
ASIDES = ("checkpoint", "evaluation")
"""As they stand in the box."""
PACED = 1.0
"""Seconds between two medians of a member's steps: of those that were done meanwhile, ..."""
FEWEST = 16
"""... and of this many at least."""
WARM = 2
"""Steps in which compilers run and caches fill; their times mean nothing."""
_RING = layout.RING * layout.PACE.size


class _Identity(msgspec.Struct):
    worker: int = 0
    argv: list[str] = []
    python: str = ""
    host: str = ""
    notes: dict[str, str] = {}


class _Raised(msgspec.Struct):
    type: str
    message: str
    at: float
    frames: list[tuple[str, int, str]] = []
    limit: int = 0


class _Round(msgspec.Struct):
    """Of what was declared: for which init of this process (1, 2, …); 0 where it does not say it."""

    round: int = 0


class OpenBox:
    """One mapped black box. Its texts are decoded anew only when they changed."""

    def __init__(self, path: Path) -> None:
        """Raises OSError or ValueError where the file is not a whole box of this version."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if (size := os.fstat(fd).st_size) != layout.SIZE:
                raise ValueError(f"its black box has {size} bytes, not {layout.SIZE}: {path}")
            self.map = mmap.mmap(fd, layout.SIZE)
        finally:
            os.close(fd)
        self.pid: int
        self.started: int
        magic, version, self.pid, self.started = layout.HEADER.unpack_from(self.map, 0)[:4]
        self._writer()
        if magic != layout.MAGIC:
            raise ValueError(f"its black box is none: {path}")
        if version != layout.VERSION:
            raise ValueError(f"its black box is of version {version}, not {layout.VERSION}: {path}")
        if path.stem != str(self.pid):
            raise ValueError(f"its black box is that of process {self.pid}: {path}")
        self.stacks = path.with_suffix(".stacks")
        self.dumped = 0
        """Bytes of stacks that it has written for us: they are no I/O of its own."""
        self.ahead = ahead(self.born, self.pid)
        """How far its clock is ahead of ours (s); all that is read of it is by ours."""
        self._texts: dict[str, tuple[int, str]] = {}
        self._garbled: set[str] = set()
        self._declared: Declared | None = None
        self._told_last: tuple[Declared | None, int] = None, 0
        """What it declared last, and for which of its inits."""
        self._raised: Raised | None = None
        self.identity = _Identity()
        self.calls = CallReader(self.map)
        self.passes = PassReader(self.map)
        self._paced = Pace(), 0.0
        self._steps = -1
        self._timed: tuple[tuple[float, ...], float] = (), 0.0
        self._checked: tuple[bytes, tuple[Check, ...]] = (
            bytes(layout.CHECKS * layout.CHECK.size),
            (),
        )

    @property
    def whole(self) -> bool:
        """Whether the file still has its size: its owner may do with it what he wants, and a look at a
        map of a file that was cut would end this process (SIGBUS)."""
        return self.map.size() == layout.SIZE

    @property
    def state(self) -> bytes:
        """What differs as soon as its owner is in another phase; of one that was cut nothing."""
        if not self.whole:
            return b""
        return self.map[layout.STATE_AT : layout.STATE_AT + layout.STATE.size]

    def read(self) -> BoxReading:
        """One look. Raises ValueError where the file was cut meanwhile."""
        if not self.whole:
            raise ValueError(f"its black box was cut to {self.map.size()} bytes")
        self._writer()
        phase, since, round_ = self._state()
        self._read_texts()
        for _ in range(3):
            if (state := self._state()) == (phase, since, round_):
                break
            # It entered another phase meanwhile: what it declares for that was written before.
            phase, since, round_ = state
            self._read_texts()
        told, of = self._told_last
        if of <= round_:  # else it has written it for the init that it enters next
            self._declared = told
        step, step_at = self._step()
        op, ops = self._operation()
        now = time.monotonic() + self.ahead
        inside = self._inside(now)
        found = BoxReading(
            phase=phase,
            phase_since=since,
            round=round_,
            detail=self._texts.get("detail", (0, ""))[1],
            step=step,
            step_at=step_at,
            intervals=self._intervals(step, step_at),
            op=op,
            ops=ops,
            inside=inside,
            groups=self.calls.states(),
            declared=self._declared,
            raised=self._raised,
            notes={**self.identity.notes, BOX: self._unread()}
            if self._garbled
            else self.identity.notes,
            pace=self._pace(step, step_at),
            spent=self._spent(now),
            loops=self.passes.loops(),
            loss=self._loss(),
            numbered=self._numbered(),
            kept=self._kept(),
            checks=self._checks(),
        )
        return timed(found, -self.ahead) if self.ahead else found

    def _read_texts(self) -> None:
        if self._changed("identity"):
            self.identity = self._told("identity", _Identity) or self.identity
        if self._changed("declared"):
            told = self._told("declared", Declared)
            of = _decode(self._texts["declared"][1], _Round) or _Round()
            self._told_last = told, of.round
        if self._changed("raised"):
            self._raised = self._exception()
        self._changed("detail")

    @property
    def declared(self) -> bool:
        """Whether it had told a framework's init who it is, at the last look."""
        return self._declared is not None

    @property
    def job(self) -> str:
        """The job that it declared, at the last look; "" where it did not."""
        return self._declared.job if self._declared is not None else ""

    def beat(self, now: float, let_through: int, verdict: int = 0) -> None:
        """Writes the agent's words: heartbeat (s), rounds let through, verdict."""
        if self.whole:
            heard = now + self.ahead
            layout.AGENT.pack_into(self.map, layout.AGENT_AT, heard, let_through, verdict)

    def say(self, text: str) -> None:
        """Leaves the verdict's text for the member's user."""
        if self.whole:
            layout.write_text(self.map, "verdict", text)

    def _writer(self) -> None:
        """Its birth, main thread, signal and file for stacks: another program that the process
        executes in its place writes them anew."""
        self.born: float
        self.main_thread: int
        self.signum: int
        self.stack_fd: int
        writer = layout.HEADER.unpack_from(self.map, 0)[4:]
        self.born, self.main_thread, self.signum, self.stack_fd = writer

    def _state(self) -> tuple[int, float, int]:
        for _ in range(4):
            begin, phase, since, round_, end = layout.STATE.unpack_from(self.map, layout.STATE_AT)
            if begin == end:
                break
        return min(max(phase, 0), 8), since, round_

    def _step(self) -> tuple[int, float]:
        for _ in range(4):
            begin, step, at, _, _, end = layout.STEP.unpack_from(self.map, layout.STEP_AT)
            if begin == end:
                break
        return step, at

    def _intervals(self, step: int, at: float) -> tuple[float, ...]:
        """The times between the last steps (s), from the ring; once it was full, it is read once a second."""
        told, when = self._timed
        if step == self._steps or (self._steps > layout.RING and 0.0 <= at - when < PACED):
            return told
        self._steps = step
        known = min(step, layout.RING - 1)
        ring = self._ring()
        first = (step - known + 1) % layout.RING
        times = [done for done, _, _ in (ring[first:] + ring[:first])[:known]]
        self._timed = tuple(b - a for a, b in pairwise(times) if b >= a), at
        return self._timed[0]

    def _pace(self, step: int, at: float) -> Pace | None:
        """Medians of the last steps, worked out once a second."""
        known, when = self._paced
        if at - when < PACED or step <= WARM:
            return known if known.steps else None
        most = min(step - WARM, layout.RING - 1)
        ring = self._ring()
        new = sum(ring[n % layout.RING][0] > at - PACED for n in range(step - most + 1, step + 1))
        steps = max(new, min(most, FEWEST))
        last = range(step - steps + 1, step + 1)
        times = [ring[n % layout.RING][0] - ring[(n - 1) % layout.RING][0] for n in last]
        found = Pace(
            steps=steps,
            step=median(times),
            input=median(ring[n % layout.RING][1] for n in last),
            sync=median(ring[n % layout.RING][2] for n in last),
        )
        self._paced = found, at
        return found

    def _ring(self) -> list[tuple[float, float, float]]:
        """Of the last steps, by step number: time, seconds of waiting for data, and in collectives."""
        raw = self.map[layout.RING_AT : layout.RING_AT + _RING]
        return list(layout.PACE.iter_unpack(raw))

    def _spent(self, now: float) -> Spent:
        input_, sync = layout.STEP.unpack_from(self.map, layout.STEP_AT)[3:5]
        counts, spent, inside = [], [], ""
        for kind, name in enumerate(ASIDES):
            at = layout.ASIDES_AT + kind * layout.ASIDE.size
            count, active, since, over = layout.ASIDE.unpack_from(self.map, at)
            counts.append(count)
            spent.append(over + (max(0.0, now - since) if active else 0.0))
            inside = name if active else inside
        return Spent(input_, sync, spent[0], spent[1], counts[0], counts[1], inside)

    def _loss(self) -> Loss | None:
        begin, bad, step, value, end = layout.LOSS.unpack_from(self.map, layout.LOSS_AT)
        return Loss(bad=bad, step=step, value=str(value)) if begin and begin == end else None

    def _numbered(self) -> Numbered | None:
        begin, *told, end = layout.NUMBER.unpack_from(self.map, layout.NUMBER_AT)
        return Numbered(*told) if begin and begin == end else None

    def _kept(self) -> Saves | None:
        begin, *told, end = layout.KEPT.unpack_from(self.map, layout.KEPT_AT)
        return Saves(*told) if begin and begin == end else None

    def _checks(self) -> tuple[Check, ...]:
        """Those of the ring that are whole, oldest first."""
        begin, end = layout.CHECKS_AT, layout.CHECKS_AT + layout.CHECKS * layout.CHECK.size
        raw = self.map[begin:end]
        if raw != self._checked[0]:
            looks = [Check(*fields) for fields in layout.CHECK.iter_unpack(raw)]
            found = sorted((c for c in looks if c.digest), key=lambda c: c.step)
            self._checked = raw, tuple(found)
        return self._checked[1]

    def _operation(self) -> tuple[Op | None, int]:
        """What the main thread is inside of, else any thread; and how many were entered in all."""
        inside: Op | None = None
        entered = shared = 0
        for slot in range(layout.SLOTS):
            at = layout.SLOTS_AT + slot * layout.SLOT_BYTES
            fields = layout.OP.unpack_from(self.map, at)
            begin, since, _, active, group, number, name, end = fields
            if begin == 0:
                continue
            entered += begin
            if not active or begin != end:
                continue
            said = name.rstrip(b"\0").decode("utf-8", "replace")
            if inside is None:
                shared = group
                inside = Op(
                    said,
                    begin,
                    since,
                    group=self.calls.name(group),
                    position=number,
                    beside=slot != 0,
                )
            elif group and group == shared and not inside.also:
                inside = msgspec.structs.replace(inside, also=said)
        return inside, entered

    def _inside(self, now: float) -> float:
        """Seconds inside operations so far, of the thread that has been in them the longest."""
        longest = 0.0
        for slot in range(layout.SLOTS):
            at = layout.SLOTS_AT + slot * layout.SLOT_BYTES
            begin, since, spent, active = layout.OP.unpack_from(self.map, at)[:4]
            if begin:
                longest = max(longest, spent + (max(0.0, now - since) if active else 0.0))
        return longest

    def _exception(self) -> Raised | None:
        told = self._told("raised", _Raised)
        if told is None:
            return None
        frames = tuple(Frame(*f) for f in told.frames)
        own = next((f for f in frames if f.is_user), None)
        return Raised(
            type=told.type,
            message=told.message,
            at=told.at,
            where=own,
            frames=frames,
            limit=told.limit,
        )

    def _told(self, name: str, kind: type[T]) -> T | None:
        """What a text says; None where it says nothing, or nothing that can be read."""
        text = self._texts[name][1]
        found = _decode(text, kind)
        self._garbled.discard(name)
        if text and found is None:
            self._garbled.add(name)
        return found

    def _unread(self) -> str:
        return f"its black box is garbled: {', '.join(sorted(self._garbled))}"

    def _changed(self, name: str) -> bool:
        offset, _ = layout.TEXTS[name]
        lock, _ = layout.TEXT.unpack_from(self.map, offset)
        if lock == self._texts.get(name, (0, ""))[0]:
            return False
        text = layout.read_text(self.map, name)
        if text is None:
            return False  # being written now; the next look will see it
        self._texts[name] = (lock, text)
        return True


def _decode(text: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
