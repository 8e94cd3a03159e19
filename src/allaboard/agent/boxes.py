"""Reads the black boxes of one folder. Whatever a box holds, reading it never fails."""

from __future__ import annotations

import mmap
import os
import struct
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from allaboard.agent.calls import CallReader
from allaboard.agent.passes import PassReader
from allaboard.coordinator.events import BoxReading
from allaboard.facts import (
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
from allaboard.probe import blackbox as layout

T = TypeVar("T")
ASIDES = ("checkpoint", "evaluation")
"""As they stand in the box."""
PACED = 1.0
"""Seconds between two medians of a member's steps."""
WARM = 2
"""Steps in which compilers run and caches fill; their times mean nothing."""
_RING = struct.Struct(f"<{layout.RING}d")


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


class OpenBox:
    """One mapped black box. Its texts are decoded anew only when they changed."""

    def __init__(self, path: Path) -> None:
        """Raises OSError or ValueError where the file is not a whole box of this version."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if os.fstat(fd).st_size != layout.SIZE:
                raise ValueError(f"{path}: not {layout.SIZE} bytes")
            self.map = mmap.mmap(fd, layout.SIZE)
        finally:
            os.close(fd)
        self.pid: int
        self.started: int
        magic, version, self.pid, self.started = layout.HEADER.unpack_from(self.map, 0)[:4]
        self._writer()
        if magic != layout.MAGIC or version != layout.VERSION or path.stem != str(self.pid):
            raise ValueError(f"{path}: not a black box of version {layout.VERSION}")
        self.stacks = path.with_suffix(".stacks")
        self._texts: dict[str, tuple[int, str]] = {}
        self._declared: Declared | None = None
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

    def read(self) -> BoxReading:
        """One look. Raises ValueError where the file was cut meanwhile."""
        if not self.whole:
            raise ValueError("the black box was cut")
        self._writer()
        if self._changed("identity"):
            self.identity = _decode(self._texts["identity"][1], _Identity) or self.identity
        if self._changed("declared"):
            self._declared = _decode(self._texts["declared"][1], Declared)
        if self._changed("raised"):
            self._raised = self._exception()
        self._changed("detail")
        phase, since, round_ = self._state()
        step, step_at = self._step()
        op, ops = self._operation()
        inside = self._inside(time.monotonic())
        return BoxReading(
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
            notes=self.identity.notes,
            pace=self._pace(step, step_at),
            spent=self._spent(time.monotonic()),
            loops=self.passes.loops(),
            loss=self._loss(),
            numbered=self._numbered(),
            kept=self._kept(),
            checks=self._checks(),
        )

    @property
    def job(self) -> str:
        """The job that it declared, at the last look; "" where it did not."""
        return self._declared.job if self._declared is not None else ""

    def beat(self, now: float, let_through: int, verdict: int = 0) -> None:
        """Writes the agent's words: heartbeat (s), rounds let through, verdict."""
        if self.whole:
            layout.AGENT.pack_into(self.map, layout.AGENT_AT, now, let_through, verdict)

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
            begin, step, at, end = layout.STEP.unpack_from(self.map, layout.STEP_AT)
            if begin == end:
                break
        return step, at

    def _intervals(self, step: int, at: float) -> tuple[float, ...]:
        """The times between the last steps (s), from the ring; a full ring is read once a second."""
        told, when = self._timed
        if step == self._steps or (step > layout.RING and 0.0 <= at - when < PACED):
            return told
        self._steps = step
        known = min(step, layout.RING - 1)
        ring = _RING.unpack_from(self.map, layout.RING_AT)
        first = (step - known + 1) % layout.RING
        times = (ring[first:] + ring[:first])[:known]
        self._timed = tuple(b - a for a, b in pairwise(times) if b >= a), at
        return self._timed[0]

    def _pace(self, step: int, at: float) -> Pace | None:
        """Medians over the ring, worked out once a second."""
        known, when = self._paced
        if at - when < PACED or step <= WARM:
            return known if known.steps else None
        steps = min(step - WARM, layout.RING - 1)
        ring = _RING.unpack_from(self.map, layout.RING_AT)
        waits = [
            layout.PACE.unpack_from(self.map, layout.PACE_AT + n % layout.RING * layout.PACE.size)
            for n in range(step - steps + 1, step + 1)
        ]
        times = [
            ring[n % layout.RING] - ring[(n - 1) % layout.RING]
            for n in range(step - steps + 1, step + 1)
        ]
        found = Pace(
            steps=steps,
            step=median(times),
            input=median(w[0] for w in waits),
            sync=median(w[1] for w in waits),
        )
        self._paced = found, at
        return found

    def _spent(self, now: float) -> Spent:
        input_, sync = layout.SPENT_TOTALS.unpack_from(self.map, layout.SPENT_TOTALS_AT)
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
        entered = 0
        for slot in range(layout.SLOTS):
            at = layout.SLOTS_AT + slot * layout.SLOT_BYTES
            begin, since, active, group, number, name, end = layout.OP.unpack_from(self.map, at)
            if begin == 0:
                continue
            entered += begin
            if active and begin == end and inside is None:
                inside = Op(
                    name.rstrip(b"\0").decode("utf-8", "replace"),
                    begin,
                    since,
                    group=self.calls.name(group),
                    position=number,
                    beside=slot != 0,
                )
        return inside, entered

    def _inside(self, now: float) -> float:
        """Seconds inside operations so far, of the thread that has been in them the longest."""
        longest = 0.0
        for slot in range(layout.SLOTS):
            at = layout.SLOTS_AT + slot * layout.SLOT_BYTES
            begin, since, active = layout.OP.unpack_from(self.map, at)[:3]
            if begin:
                (spent,) = layout.TIME.unpack_from(self.map, at + layout.SPENT_AT)
                longest = max(longest, spent + (max(0.0, now - since) if active else 0.0))
        return longest

    def _exception(self) -> Raised | None:
        told = _decode(self._texts["raised"][1], _Raised)
        if told is None:
            return None
        frames = tuple(Frame(*f) for f in told.frames)
        own = next((f for f in frames if f.is_user), None)
        return Raised(type=told.type, message=told.message, at=told.at, where=own, frames=frames)

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
