"""One look at all processes of the job: boxes, /proc, children that may be members."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from allaboard.analysis.failures.failure_causality import known_exit_status
from allaboard.analysis.parameter_servers.parameter_servers import SERVER_JOBS
from allaboard.blackbox.reader import OpenBox
from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import Phase, Silence
from allaboard.hosts import proc
from allaboard.hosts.cpu_quota import cpu_quota_of
from allaboard.hosts.exit_watcher import ExitWatcher
from allaboard.hosts.resource_usage import ResourceUsage
from allaboard.hosts.tcp_retransmits import UnansweredConnections
from allaboard.probe.layout import ENDED
from allaboard.protocol.events import Event, ProcessExited, ProcessSampled, ResourcesMeasured

QUOTA_REFRESH_S = 1.0
"""Seconds after which it is looked anew how much CPU a process may use."""
SLOW_CALL_S = 2.0
"""Seconds in init or in one operation after which the kernel is asked for connections without answer,
and between two such questions."""

_HELPER_MODULES = ("resource_tracker", "forkserver", "semaphore_tracker")


USAGE_INTERVAL_S = 1.0
"""Seconds between two looks at files, memory and disks."""


class ProcessWatcher:
    """Keeps the open boxes and what belongs to which worker.

    ``ready`` once it is known of every worker which process it is: before that, a box cannot be told
    from one of a worker's child. ``written`` are folders that the job writes to; ``wrapped``: the worker is
    somebody else's launcher; ``struck`` says whether the kernel has killed below this worker for want of
    memory; ``beside`` is the worker's task where that is outside of the cluster.
    """

    def __init__(
        self,
        folder: Path,
        written_folders: tuple[Path, ...] = (),
        *,
        wrapped: bool = False,
        was_oom_killed: Callable[[int], bool] = lambda _: False,
        beside: str = "",
    ) -> None:
        self.folder = folder
        self.exit_watcher = ExitWatcher()
        self._wrapped = wrapped
        self._was_oom_killed = was_oom_killed
        self._beside = beside
        self.ready = False
        self.boxes: dict[int, OpenBox] = {}
        self.workers: dict[int, int] = {}
        self.exited_pids: set[int] = set()
        self._other_pids: dict[int, int] = {}
        self._unreadable: dict[str, str] = {}
        self._quotas: dict[int, tuple[float, float | None]] = {}
        self._usage = ResourceUsage(written_folders)
        self._measured_at = float("-inf")
        self._silences: dict[int, tuple[float, tuple[Silence, ...]]] = {}
        self._socket_probe = UnansweredConnections()
        self._last_glance: tuple[object, ...] = ()
        self._end_unknown_since: dict[int, float] = {}

    def measure_usage(self, now: float) -> list[Event]:
        """What the members use of what is limited, once in a while."""
        if now < self._measured_at + USAGE_INTERVAL_S or not self.boxes:
            return []
        self._measured_at = now
        alive = [pid for pid in self.boxes if pid not in self.exited_pids]
        serving = [pid for pid in alive if self.boxes[pid].job in SERVER_JOBS]
        readings = self._usage.read_usage(alive, serving)
        return [ResourcesMeasured(at=now, readings=tuple(readings))] if readings else []

    def add_worker(self, worker: int, pid: int) -> None:
        self.workers[pid] = worker

    def mark_exited(self, pid: int) -> None:
        self.exited_pids.add(pid)

    def sample_processes(self, now: float, candidates: bool = False) -> list[Event]:
        """What every process of the job does now; ends of processes that are not our children.
        ``candidates``: also look for children that have not declared themselves."""
        self._open_new_boxes()
        if candidates:
            self._find_candidates()
        events: list[Event] = []
        for pid, worker in {**self.workers, **self._other_pids}.items():
            if pid in self.exited_pids:
                continue
            box = self.boxes.get(pid)
            stat = proc.read_stat(pid)
            is_worker = pid in self.workers
            if stat is None or (stat.state in "ZX" and not is_worker):
                if not is_worker and self._is_end_known(pid, now):
                    self.exited_pids.add(pid)
                    ended_at = self._end_unknown_since.pop(pid, now)
                    if box is not None:
                        events.append(self._make_sample(pid, worker, ended_at, "S", 0.0))
                    events.append(self._make_exit(pid, worker, ended_at))
                continue
            if stat.state not in "ZX":
                events.append(self._make_sample(pid, worker, now, stat.state, stat.cpu_s))
        return events

    def _is_end_known(self, pid: int, now: float) -> bool:
        """Whether it is known how this one ended, or will not be: its parent, which may just have heard it
        from the kernel, has until the next look to tell."""
        if self.exit_watcher.exit_status(pid) is not None or self._reported_status(pid) is not None:
            return True
        return pid not in self.boxes or self._end_unknown_since.setdefault(pid, now) < now

    def _reported_status(self, pid: int) -> int | None:
        """How it ended by its parent's word, as waitpid(2) gives it; None where that said nothing."""
        try:
            code = int((self.folder / f"{pid}{ENDED}").read_text())
        except (OSError, ValueError):
            return None
        return -code if code < 0 else code << 8

    def _make_exit(self, pid: int, worker: int, now: float) -> ProcessExited:
        """The end of one that somebody else started; of one that is no member not what killed it."""
        status = self.exit_watcher.exit_status(pid)
        status = self._reported_status(pid) if status is None else status
        if status is None:
            return ProcessExited(pid=pid, at=now)
        code, signal_number = known_exit_status(status)
        if signal_number is None or not self._has_declared(pid):
            return ProcessExited(pid=pid, at=now, code=code)
        oom = signal_number == signal.SIGKILL and self._was_oom_killed(worker)
        return ProcessExited(pid=pid, at=now, signal=signal_number, oom=oom)

    def _has_declared(self, pid: int) -> bool:
        box = self.boxes.get(pid)
        return box is not None and box.has_declared

    def has_changed(self) -> bool:
        """Whether somebody came or is in another phase since this was asked last; costs next to nothing."""
        states = [box.state for pid, box in self.boxes.items() if pid not in self.exited_pids]
        try:
            files = len(os.listdir(self.folder))  # noqa: PTH208 - asked all the time
        except OSError:
            files = 0
        previous_glance, self._last_glance = self._last_glance, (files, *states)
        return previous_glance != self._last_glance

    def sample_last_state(self, pid: int, now: float) -> list[Event]:
        """The last words of a worker that has ended: its box outlives it."""
        if pid not in self.boxes:
            self._open_box(self.folder / f"{pid}.box")
        has_box = pid in self.boxes or str(pid) in self._unreadable
        return [self._make_sample(pid, self.workers[pid], now, "X", 0.0)] if has_box else []

    def _make_sample(
        self, pid: int, worker: int, now: float, state: str, cpu: float
    ) -> ProcessSampled:
        box = self.boxes.get(pid)
        rank = -1
        if box is None and pid not in self.workers:
            text = proc.environment_variable(pid, "RANK")
            rank = int(text) if text is not None and text.isdigit() else -1
        reading = self._read_box(pid, box) if box is not None else None
        return ProcessSampled(
            pid=pid,
            worker=worker,
            at=now,
            state=state,
            cpu=cpu,
            sleeps=proc.count_voluntary_switches(pid)
            if state == "D" or _is_before_init(reading)
            else 0,
            box=reading,
            candidate=box is None and pid not in self.workers,
            rank=rank,
            started=pid in self.workers,
            wraps=self._wrapped and pid in self.workers,
            allowed=self._allowed_cores(pid, now),
            unanswered=self._unanswered_connections(pid, reading, now),
            unreadable=self._unreadable.get(str(pid), "") if self._unreadable else "",
            beside=self._beside if pid in self.workers else "",
        )

    def _read_box(self, pid: int, box: OpenBox) -> BoxReading | None:
        """One look; a box that was cut is let go, and its owner seen from outside alone."""
        try:
            return box.read_snapshot()
        except ValueError as error:
            self._unreadable[str(pid)] = str(error)
            del self.boxes[pid]
            return None

    def _unanswered_connections(
        self, pid: int, box: BoxReading | None, now: float
    ) -> tuple[Silence, ...]:
        """Asked only while the member has been inside init or one operation for a while, or before its
        first step: JAX connects to the others only there."""
        since = now if box is None else box.op.since if box.op is not None else now
        if box is not None and box.phase in (Phase.JOINING, Phase.JOINED) and not box.step:
            since = min(since, box.phase_since)
        if now - since < SLOW_CALL_S:
            self._silences.pop(pid, None)
            return ()
        checked_at, silences = self._silences.get(pid, (0.0, ()))
        if now - checked_at >= SLOW_CALL_S:
            silences = self._socket_probe.find_silences(pid)
            self._silences[pid] = now, silences
        return silences

    def _allowed_cores(self, pid: int, now: float) -> float:
        checked_at, limit = self._quotas.get(pid, (-QUOTA_REFRESH_S, None))
        if now - checked_at >= QUOTA_REFRESH_S:
            limit = cpu_quota_of(pid)
            self._quotas[pid] = now, limit
        cores = proc.allowed_cores(pid)
        return min(cores, limit) if limit is not None else cores

    def _open_new_boxes(self) -> None:
        if not self.ready:
            return
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 - every look; a glob costs ten times it
        except OSError:  # somebody cleaned /dev/shm; open boxes stay open
            return
        for name in names:
            stem, _, suffix = name.partition(".")
            if suffix == "box" and stem.isdigit() and int(stem) not in self.boxes:
                self._open_box(self.folder / name)

    def _open_box(self, path: Path) -> None:
        if path.stem in self._unreadable or not path.exists():
            return
        try:
            box = OpenBox(path)
            box.read_snapshot()
        except (OSError, ValueError) as error:
            self._unreadable[path.stem] = str(error)
            return
        self.boxes[box.pid] = box
        if box.pid not in self.workers:
            self._other_pids[box.pid] = box.identity.worker
            self.exit_watcher.follow_process(box.pid)

    def _find_candidates(self) -> None:
        """Python children of the workers that have not declared themselves."""
        for pid, worker in self.workers.items():
            if pid in self.exited_pids:
                continue
            for child in proc.descendants_of(pid):
                if (
                    child not in self._other_pids
                    and child not in self.exited_pids
                    and _may_be_member(child)
                ):
                    self._other_pids[child] = worker


def _may_be_member(pid: int) -> bool:
    command = proc.command_line(pid)
    if not command or not any("python" in part for part in command[:1]):
        return False
    return not any(t in part for t in _HELPER_MODULES for part in command)


def _is_before_init(box: BoxReading | None) -> bool:
    """Whether the framework is imported, and its init not begun: somebody may wait for that."""
    return box is not None and box.phase == Phase.IMPORTED
