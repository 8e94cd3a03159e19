"""Samples all processes of the job: black boxes, /proc, children that may be members."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Protocol

from allaboard.analysis.failures.failure_causality import CRASH_SIGNALS, known_exit_status
from allaboard.analysis.parameter_servers import SERVER_JOBS
from allaboard.blackbox.reader import OpenBox
from allaboard.blackbox.snapshot import BoxReading
from allaboard.facts import Phase, Reading, Silence
from allaboard.facts.time_shares import PrintedLoss
from allaboard.hosts import proc
from allaboard.hosts.cpu_quota import tightest_limit
from allaboard.hosts.exit_watcher import ExitWatcher
from allaboard.hosts.resource_usage import ALLOCATION_RETRIES, DEVICE_MEMORY, ResourceUsage
from allaboard.hosts.tcp_retransmits import UnansweredConnections
from allaboard.probe.layout import ENDED
from allaboard.protocol.events import Event, ProcessExited, ProcessSampled, ResourcesMeasured

QUOTA_REFRESH_S = 1.0
"""Seconds after which the CPU limit of a process is read again."""
WRAPPER_LOOK_S = 1.0
"""Seconds between two looks for a Python process below a worker that has no black box."""
SLOW_CALL_S = 2.0
"""Seconds in init or in one operation after which the kernel is asked for unanswered connections, and between
two such questions."""

_HELPER_MODULES = ("resource_tracker", "forkserver", "semaphore_tracker")


USAGE_INTERVAL_S = 1.0
"""Seconds between two measurements of files, memory and disks."""


class BlackBoxes(Protocol):
    """The open black boxes, for parts of the agent that read them and nothing else."""

    @property
    def boxes(self) -> Mapping[int, OpenBox]:
        """Open black boxes by pid."""


class ProcessWatcher:
    """Keeps the open black boxes and knows which process belongs to which worker.

    ``folder`` holds the black boxes, ``written_folders`` are folders that the job writes to. ``wrapped``: the
    worker is another launcher. ``was_oom_killed`` returns True if the kernel has killed a process below a
    worker because memory ran out. ``only_crash`` returns the one report of a crash in a worker's log,
    ``count_redraws`` how often it has drawn a progress bar anew.
    ``beside`` is the worker's task if that is outside of the cluster, else "".
    """

    def __init__(
        self,
        folder: Path,
        written_folders: tuple[Path, ...] = (),
        *,
        wrapped: bool = False,
        was_oom_killed: Callable[[int], bool] = lambda _: False,
        beside: str = "",
        printed_loss: Callable[[int], PrintedLoss | None] = lambda _: None,
        only_crash: Callable[[int], str] = lambda _: "",
        count_redraws: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self.folder = folder
        self.exit_watcher = ExitWatcher()
        self._wrapped = wrapped
        self._was_oom_killed = was_oom_killed
        self._beside = beside
        self._printed_loss = printed_loss
        self._only_crash = only_crash
        self._count_redraws = count_redraws
        self.ready = False
        """Whether the pid of every worker is known. Before that, a worker's box looks like that of a worker's
        child."""
        self.boxes: dict[int, OpenBox] = {}
        """Open black boxes by pid."""
        self.workers: dict[int, int] = {}
        """Worker numbers by pid."""
        self.exited_pids: set[int] = set()
        self._other_pids: dict[int, int] = {}
        self._unreadable: dict[str, str] = {}
        self._quotas: dict[bytes, tuple[float, float | None]] = {}
        """By control groups, which most workers share, when their limit was read (s), and the limit."""
        self._usage = ResourceUsage(written_folders)
        self._measured_at = float("-inf")
        self._memory_samples: dict[int, int] = {}
        """By pid the number of the last reading of the memory on accelerators."""
        self._silences: dict[int, tuple[float, tuple[Silence, ...]]] = {}
        self._socket_probe = UnansweredConnections()
        self._last_glance: tuple[object, ...] = ()
        self._end_unknown_since: dict[int, float] = {}
        self._wrappers: dict[int, tuple[float, bool]] = {}
        """Worker without a black box to when a Python below it was looked for (s), and if there is one."""

    def measure_usage(self, now: float) -> list[Event]:
        """Measure the members' use of limited resources, at most once per `USAGE_INTERVAL_S`."""
        if now < self._measured_at + USAGE_INTERVAL_S or not self.boxes:
            return []
        self._measured_at = now
        alive = [pid for pid in self.boxes if pid not in self.exited_pids]
        serving = [pid for pid in alive if self.boxes[pid].job in SERVER_JOBS]
        readings = self._usage.read_usage(alive, serving)
        for pid in alive:
            readings += self._memory_readings(pid)
        return [ResourcesMeasured(measured_at=now, readings=tuple(readings))] if readings else []

    def _memory_readings(self, pid: int) -> Iterator[Reading]:
        """Yield what a framework has counted of its memory since the last call: a value that is repeated
        would look like one that does not rise."""
        memory = self.boxes[pid].read_memory()
        if memory is None or memory.sample == self._memory_samples.get(pid):
            return
        self._memory_samples[pid] = memory.sample
        yield Reading(DEVICE_MEMORY, memory.used_nbytes, memory.limit_nbytes, pid, memory.source)
        if memory.retries >= 0:
            yield Reading(ALLOCATION_RETRIES, memory.retries, 0, pid, memory.source)

    def confirm_workers(self, all_known: bool) -> None:
        """Note whether the pid of every worker is known; only then are new black boxes opened."""
        self.ready = all_known

    def add_worker(self, worker: int, pid: int) -> None:
        self.workers[pid] = worker

    def mark_exited(self, pid: int) -> None:
        self.exited_pids.add(pid)

    def sample_processes(self, now: float, candidates: bool = False) -> list[Event]:
        """Return the state of every process, and the ends of those that are not our children.

        ``candidates``: also look for children that have not declared themselves.
        """
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
                events.append(
                    self._make_sample(pid, worker, now, stat.state, stat.cpu_s, stat.rss_nbytes)
                )
        return events

    def _is_end_known(self, pid: int, now: float) -> bool:
        """Return True if it is known how this process ended, or if it will never be.

        Its parent, which the kernel may have informed just now, has until the next look to write down the
        status.
        """
        if self.exit_watcher.exit_status(pid) is not None or self._reported_status(pid) is not None:
            return True
        return pid not in self.boxes or self._end_unknown_since.setdefault(pid, now) < now

    def _reported_status(self, pid: int) -> int | None:
        """Return the exit status that its parent wrote down, as waitpid(2) gives it; None if there is
        none."""
        try:
            code = int((self.folder / f"{pid}{ENDED}").read_text())
        except (OSError, ValueError):
            return None
        return -code if code < 0 else code << 8

    def _make_exit(self, pid: int, worker: int, now: float) -> ProcessExited:
        """Return the end of a process that another launcher started.

        Which signal killed it is reported for members only: a helper process is often killed on purpose.
        """
        status = self.exit_watcher.exit_status(pid)
        status = self._reported_status(pid) if status is None else status
        if status is None:
            return ProcessExited(pid=pid, exited_at=now)
        code, signal_number = known_exit_status(status)
        if signal_number is None or not self._has_declared(pid):
            return ProcessExited(pid=pid, exited_at=now, code=code)
        oom = signal_number == signal.SIGKILL and self._was_oom_killed(worker)
        # It writes to the streams of its worker; of two crashes it is not known which was whose.
        last_line = self._only_crash(worker) if signal_number in CRASH_SIGNALS else ""
        return ProcessExited(
            pid=pid, exited_at=now, signal=signal_number, oom=oom, last_line=last_line
        )

    def _has_declared(self, pid: int) -> bool:
        box = self.boxes.get(pid)
        return box is not None and box.has_declared

    def has_changed(self) -> bool:
        """Return True if a box appeared or a member changed its phase since the last call. Cheap enough for
        20 Hz."""
        # Two bytes per black box and one directory listing: no /proc, no parsing.
        states = [box.state for pid, box in self.boxes.items() if pid not in self.exited_pids]
        try:
            files = len(os.listdir(self.folder))  # noqa: PTH208 - asked all the time
        except OSError:
            files = 0
        previous_glance, self._last_glance = self._last_glance, (files, *states)
        return previous_glance != self._last_glance

    def sample_last_state(self, pid: int, now: float) -> list[Event]:
        """Return the last sample of a worker that has ended: its black box outlives it."""
        if pid not in self.boxes:
            self._open_box(self.folder / f"{pid}.box")
        has_box = pid in self.boxes or str(pid) in self._unreadable
        worker = self.workers.get(pid)  # None if the message of its start was lost
        if worker is None or not has_box:
            return []
        return [self._make_sample(pid, worker, now, "X", 0.0)]

    def _make_sample(
        self, pid: int, worker: int, now: float, state: str, cpu: float, rss_nbytes: int = 0
    ) -> ProcessSampled:
        box = self.boxes.get(pid)
        rank = -1
        if box is None and pid not in self.workers:
            text = proc.environment_variable(pid, "RANK")
            rank = int(text) if text is not None and text.isdecimal() else -1
        reading = self._read_box(pid, box) if box is not None else None
        return ProcessSampled(
            pid=pid,
            worker=worker,
            sampled_at=now,
            state=state,
            cpu=cpu,
            sleeps=proc.count_voluntary_switches(pid)
            if state == "D" or _is_before_init(reading)
            else 0,
            box=reading,
            candidate=box is None and pid not in self.workers,
            rank=rank,
            started_by_agent=pid in self.workers,
            wraps_launcher=self._wrapped and pid in self.workers,
            wraps_python=box is None and pid in self.workers and self._wraps_python(pid, now),
            allowed_cores=self._allowed_cores(pid, now),
            unanswered=self._unanswered_connections(pid, reading, now),
            box_error=self._unreadable.get(str(pid), "") if self._unreadable else "",
            extra_task=self._beside if pid in self.workers else "",
            rss_nbytes=rss_nbytes,
            printed_loss=self._printed_loss(worker) if pid in self.workers else None,
            redraws=self._count_redraws(worker) if pid in self.workers else 0,
        )

    def _read_box(self, pid: int, box: OpenBox) -> BoxReading | None:
        """Read a box. A truncated one is given up; from then on its owner is seen from outside only."""
        try:
            return box.read_snapshot()
        except ValueError as error:
            self._unreadable[str(pid)] = str(error)
            del self.boxes[pid]
            return None

    def _unanswered_connections(
        self, pid: int, box: BoxReading | None, now: float
    ) -> tuple[Silence, ...]:
        """Return connections of this process that get no answer.

        The kernel is asked only while a member has been inside init or one operation for a while, or before
        its first step: JAX connects to the others only there.
        """
        since = now if box is None else box.op.since if box.op is not None else now
        if box is not None and box.phase in (Phase.JOINING, Phase.JOINED) and not box.step:
            since = min(since, box.phase_since)
        if now - since < SLOW_CALL_S:
            self._silences.pop(pid, None)
            return ()
        checked_at, silences = self._silences.get(pid, (0.0, ()))
        if now - checked_at >= SLOW_CALL_S:
            silences = self._socket_probe.find_silences(pid, now)
            self._silences[pid] = now, silences
        return silences

    def _allowed_cores(self, pid: int, now: float) -> float:
        try:
            groups = proc.read_small_file(f"/proc/{pid}/cgroup")
        except OSError:
            groups = b""
        checked_at, limit = self._quotas.get(groups, (-QUOTA_REFRESH_S, None))
        if now - checked_at >= QUOTA_REFRESH_S:
            tightest = tightest_limit(groups.decode(errors="surrogateescape"))
            limit = tightest[1] if tightest is not None else None
            self._quotas[groups] = now, limit
        # The affinity mask may be wider than the CPU quota of the control group, and the other way round.
        cores = proc.allowed_cores(pid)
        return min(cores, limit) if limit is not None else cores

    def _wraps_python(self, pid: int, now: float) -> bool:
        looked_at, wraps = self._wrappers.get(pid, (float("-inf"), False))
        if not wraps and now - looked_at >= WRAPPER_LOOK_S:
            wraps = not _may_be_member(pid) and any(
                _may_be_member(child) and _lets_probe_load(child)
                for child in proc.descendants_of(pid)
            )
            self._wrappers[pid] = now, wraps
        return wraps

    def _open_new_boxes(self) -> None:
        # A worker's own box carries its pid only; before all pids are known it would be taken for a child's.
        if not self.ready:
            return
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 - every poll; a glob costs ten times as much
        except OSError:  # somebody cleaned /dev/shm; open boxes stay open
            return
        for name in names:
            stem, _, suffix = name.partition(".")
            if suffix == "box" and stem.isdecimal() and int(stem) not in self.boxes:
                self._open_box(self.folder / name)

    def _open_box(self, path: Path) -> None:
        # A box that was unreadable once stays so: it is truncated or of another version, and each look costs.
        if path.stem in self._unreadable or not os.access(path, os.F_OK):
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
        """Note the Python children of the workers that have no black box yet."""
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


def _lets_probe_load(pid: int) -> bool:
    """Return True if this Python was started without the flags that keep PYTHONPATH or site away."""
    flags = takewhile(lambda word: word.startswith("-"), proc.command_line(pid)[1:])
    return not any(re.fullmatch(r"-[A-Za-z]*[ISE][A-Za-z]*", word) for word in flags)


def _is_before_init(box: BoxReading | None) -> bool:
    """Return True if the framework is imported and its init has not begun: others may wait for this
    process."""
    return box is not None and box.phase == Phase.IMPORTED
