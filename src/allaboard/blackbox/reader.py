"""Reads the black boxes of one folder. Whatever a box holds, reading it never fails."""

from __future__ import annotations

import os
import time
from pathlib import Path

from allaboard.blackbox.box_bytes import BoxBytes
from allaboard.blackbox.clock import clock_offset, shift_times
from allaboard.blackbox.collective_calls import CallReader
from allaboard.blackbox.data_loops import DataLoopReader
from allaboard.blackbox.operations import current_operation, seconds_in_operations
from allaboard.blackbox.snapshot import BoxReading
from allaboard.blackbox.steps import StepReader
from allaboard.blackbox.text_records import Identity, TextRecords
from allaboard.facts import BOX, Check, DeviceMemory, Loss, Numbered, Saves, Spent, Traced
from allaboard.probe import device_memory, layout

PAUSE_KINDS = ("checkpoint", "evaluation")
"""As they stand in the box."""


class OpenBox:
    """One open black box. Its texts are decoded anew only when they changed."""

    def __init__(self, path: Path) -> None:
        """Raises OSError or ValueError where the file is not a whole box of this version."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if (size := os.fstat(fd).st_size) != layout.SIZE:
                raise ValueError(f"its black box has {size} bytes, not {layout.SIZE}: {path}")
        except BaseException:
            os.close(fd)
            raise
        self.map = BoxBytes(fd)
        self.map.refresh(0, layout.HEADER.size)
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
        self.dumped_bytes = 0
        """Bytes of stacks that it has written for us: they are no I/O of its own."""
        self.clock_ahead_s = clock_offset(self.born, self.pid)
        """How far its clock is ahead of ours (s); all that is read of it is by ours."""
        self._texts = TextRecords(self.map)
        self.steps = StepReader(self.map)
        self.calls = CallReader(self.map)
        self.data_loops = DataLoopReader(self.map)
        self._checked: tuple[bytes, tuple[Check, ...]] = (
            bytes(layout.CHECKS * layout.CHECK.size),
            (),
        )

    @property
    def is_whole(self) -> bool:
        """True if the file still has its size: its owner may do with it what he wants."""
        return self.map.file_size() == layout.SIZE

    @property
    def state(self) -> bytes:
        """Bytes that differ as soon as the owner is in another phase; empty if the file was cut."""
        if not self.is_whole:
            return b""
        try:
            self.map.refresh(layout.STATE_AT, layout.STATE.size)
        except ValueError:
            return b""
        return bytes(self.map[layout.STATE_AT : layout.STATE_AT + layout.STATE.size])

    @property
    def phase(self) -> int:
        """Phase of the owner now; 0 if the file was cut."""
        try:
            return self._state()[0]
        except ValueError:
            return 0

    def read_snapshot(self) -> BoxReading:
        """Read the box once. Raises ValueError if the file was cut meanwhile."""
        if not self.is_whole:
            raise ValueError(f"its black box was cut to {self.map.file_size()} bytes")
        self.map.refresh(0, layout.SLOTS_AT + layout.SLOTS * layout.SLOT_BYTES)
        self.map.refresh(layout.CHECKS_AT, layout.TENSORS_AT - layout.CHECKS_AT)
        self._writer()
        phase, since, round_ = self._state()
        self._texts.read_changes()
        # Bounded: an owner that races through its phases must not hold the agent up.
        for _ in range(3):
            if (state := self._state()) == (phase, since, round_):
                break
            # It entered another phase meanwhile: what it declares for that was written before.
            phase, since, round_ = state
            self._texts.read_changes()
        self._texts.enter_init(round_)
        step, step_at = self.steps.last_step()
        op, ops = current_operation(self.map, self.calls.group_name)
        now = time.monotonic() + self.clock_ahead_s
        garbled, notes = self._texts.garbled, self.identity.notes
        snapshot = BoxReading(
            phase=phase,
            phase_since=since,
            round=round_,
            detail=self._texts.detail,
            step=step,
            step_at=step_at,
            intervals=self.steps.intervals(step, step_at),
            op=op,
            ops=ops,
            inside=seconds_in_operations(self.map, now),
            groups=self.calls.group_states(),
            declared=self._texts.declared,
            raised=self._texts.raised,
            notes={**notes, BOX: garbled} if garbled else notes,
            pace=self.steps.pace(step, step_at),
            spent=self._spent(now),
            loops=self.data_loops.loops(),
            loss=self._loss(),
            last_loss=self.steps.loss,
            memory=self.read_memory(),
            numbered=self._numbered(),
            kept=self._saves(),
            checks=self._checks(),
        )
        return shift_times(snapshot, -self.clock_ahead_s) if self.clock_ahead_s else snapshot

    @property
    def identity(self) -> Identity:
        """Identity that the owner gave of itself, as of the last look."""
        return self._texts.identity

    @property
    def has_declared(self) -> bool:
        """True if the owner had declared its rank to a framework's init, as of the last look."""
        return self._texts.declared is not None

    @property
    def job(self) -> str:
        """The job that the owner declared, as of the last look; "" if it declared none."""
        return self._texts.declared.job if self._texts.declared is not None else ""

    def write_heartbeat(self, now: float, let_through: int, verdict: int = 0) -> None:
        """Write the agent's heartbeat (s), the rounds that are let through, and the verdict."""
        if self.is_whole:
            heard = now + self.clock_ahead_s
            self.map.write(layout.AGENT_AT, layout.AGENT.pack(heard, let_through, verdict))

    def write_verdict(self, text: str) -> None:
        """Leave the verdict's text for the member's user."""
        offset, room = layout.TEXTS["verdict"]
        try:
            self.map.refresh(offset, layout.TEXT.size)
        except ValueError:
            return  # it was cut
        data = text.encode("utf-8", "replace")[: room - layout.TEXT.size]
        lock = layout.TEXT.unpack_from(self.map, offset)[0] & ~1
        # As `layout.write_text` does in a map: the lock is odd while the bytes change.
        self.map.write(offset, layout.TEXT.pack(lock + 1, len(data)))
        self.map.write(offset + layout.TEXT.size, data)
        self.map.write(offset, layout.TEXT.pack(lock + 2, len(data)))

    def trace_calls(self, group: str, round_: int) -> Traced | None:
        """Return the last calls in one group; None if the box does not know it or has been cut."""
        try:
            return self.calls.trace_group(group, round_)
        except ValueError:
            return None

    def _writer(self) -> None:
        """Read birth, main thread, signal and stack file again: another program that the process
        executes in its place writes them anew."""
        self.born: float
        self.main_thread: int
        self.signum: int
        self.stack_fd: int
        writer = layout.HEADER.unpack_from(self.map, 0)[4:]
        self.born, self.main_thread, self.signum, self.stack_fd = writer

    def _state(self) -> tuple[int, float, int]:
        # The owner writes `begin` first and `end` last: if they differ, it is writing just now. It may also
        # have been killed in the middle, so the tries are bounded.
        for _ in range(4):
            self.map.refresh(layout.STATE_AT, layout.STATE.size)
            begin, phase, since, round_, end = layout.STATE.unpack_from(self.map, layout.STATE_AT)
            if begin == end:
                break
        # Bounded, since it becomes an index: the file is the member's own, and may hold any number.
        return min(max(phase, 0), 8), since, round_

    def _spent(self, now: float) -> Spent:
        input_, sync = layout.STEP.unpack_from(self.map, layout.STEP_AT)[3:5]
        counts, spent, current_pause = [], [], ""
        for kind, name in enumerate(PAUSE_KINDS):
            offset = layout.ASIDES_AT + kind * layout.ASIDE.size
            count, active, since, over = layout.ASIDE.unpack_from(self.map, offset)
            counts.append(count)
            spent.append(over + (max(0.0, now - since) if active else 0.0))
            current_pause = name if active else current_pause
        return Spent(input_, sync, spent[0], spent[1], counts[0], counts[1], current_pause)

    def _loss(self) -> Loss | None:
        # A value that is being written is left out; it is there at the next look.
        begin, bad, step, value, end = layout.LOSS.unpack_from(self.map, layout.LOSS_AT)
        return Loss(bad=bad, step=step, value=str(value)) if begin and begin == end else None

    def read_memory(self) -> DeviceMemory | None:
        """Return its memory on an accelerator, as of the last look; None if no framework counts any."""
        begin, *counted, retries, source, device, end = layout.MEMORY.unpack_from(
            self.map, layout.MEMORY_AT
        )
        if not begin or begin != end or begin >> 63:
            return None
        used, reserved, peak, limit = (max(0, nbytes) for nbytes in counted)
        sources = [name for _, _, name in device_memory.READERS]
        return DeviceMemory(
            device=device,
            used_nbytes=used,
            reserved_nbytes=reserved,
            peak_nbytes=peak,
            limit_nbytes=limit,
            retries=max(-1, retries),
            source=sources[source - 1] if 0 < source <= len(sources) else "",
            sample=begin,
        )

    def _numbered(self) -> Numbered | None:
        begin, *fields, end = layout.NUMBER.unpack_from(self.map, layout.NUMBER_AT)
        return Numbered(*fields) if begin and begin == end else None

    def _saves(self) -> Saves | None:
        begin, *fields, end = layout.KEPT.unpack_from(self.map, layout.KEPT_AT)
        return Saves(*fields) if begin and begin == end else None

    def _checks(self) -> tuple[Check, ...]:
        """Return the complete entries of the ring, oldest first."""
        begin, end = layout.CHECKS_AT, layout.CHECKS_AT + layout.CHECKS * layout.CHECK.size
        raw = bytes(self.map[begin:end])
        if raw != self._checked[0]:
            looks = [Check(*fields) for fields in layout.CHECK.iter_unpack(raw)]
            checks = sorted((c for c in looks if c.digest), key=lambda c: c.step)
            self._checked = raw, tuple(checks)
        return self._checked[1]
