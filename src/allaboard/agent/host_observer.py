"""Everything that the agent reads of this host on its own, as events: processes, GPUs, connections, ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from allaboard.agent.observation.arrival_fifo import ArrivalFifo
from allaboard.agent.observation.port_conflict import PortConflicts
from allaboard.agent.observation.process_watcher import ProcessWatcher
from allaboard.agent.observation.traffic import TrafficSampler
from allaboard.agent.options import Options
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.contracts import Clock
from allaboard.launch.local_workers import Launch, working_folder
from allaboard.protocol.events import Event
from allaboard.sampling.gpu_watcher import GpuWatcher, has_gpus

RARE_LOOK_S = 1.0
"""Seconds between two looks at things that change rarely (control groups, new child processes)."""


class HostObserver:
    """Reads what concerns one launch. ``workers`` returns its workers, which are made later; ``wake`` wakes
    the agent's loop."""

    def __init__(
        self,
        launch: Launch,
        options: Options,
        clock: Clock,
        workers: Callable[[], WorkerProcesses],
        wake: Callable[[], None],
        write_line: Callable[[str], None],
    ) -> None:
        self._workers = workers
        self._wake = wake
        self._write_line = write_line
        self.process_watcher = ProcessWatcher(
            launch.boxes,
            (launch.plan.run_dir, Path(working_folder())),
            wrapped=options.wrapped,
            was_oom_killed=lambda worker: workers().was_oom_killed(worker),
            printed_loss=lambda worker: workers().printed_loss(worker),
            count_redraws=lambda worker: workers().count_redraws(worker),
            only_crash=lambda worker: workers().only_crash(worker),
            beside=options.joined.task_beside_cluster if options.joined is not None else "",
        )
        self._gpu_watcher = GpuWatcher(write_line) if has_gpus() else None
        self._arrival_fifo = ArrivalFifo(launch.boxes, wake)
        self._traffic_sampler = TrafficSampler(clock.monotonic)
        self._port_conflicts = PortConflicts()
        # An attached process is no child of ours; its only Python child that we know is this agent itself.
        self._looks_for_children = (
            launch.plan.size == 1 and not options.attached and not options.observe
        )
        self._next_rare_look = 0.0
        self._has_reported_sampling_error = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let arrivals at the gate and ends of processes wake the loop at once."""
        self._arrival_fifo.start_listening(loop)
        loop.add_reader(self.process_watcher.exit_watcher.fileno(), self._on_process_ended)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read nothing more."""
        self._arrival_fifo.close(loop)
        loop.remove_reader(self.process_watcher.exit_watcher.fileno())
        self.process_watcher.exit_watcher.close()
        if self._gpu_watcher is not None:
            self._gpu_watcher.close()

    def collect_events(self, now: float, is_gate_open: bool) -> list[Event]:
        """Return what has happened, or was measured, since the last call."""
        is_rare_look = now >= self._next_rare_look
        if is_rare_look:
            self._next_rare_look = now + RARE_LOOK_S
            self._workers().watch_oom_counters()
        events = self.process_watcher.sample_processes(
            now, candidates=is_rare_look and self._looks_for_children and not is_gate_open
        )
        # These two read the samples of this look, so they come after them.
        events += self._traffic_sampler.collect_samples(now, events)
        events += self._port_conflicts.find_holders(now, events)
        if self._traffic_sampler.sampling_error and not self._has_reported_sampling_error:
            self._has_reported_sampling_error = True
            self._write_line(self._traffic_sampler.sampling_error)
        if is_gate_open:
            events += self.process_watcher.measure_usage(now)
        if self._gpu_watcher is not None:
            events += self._gpu_watcher.collect_samples(now)
        return events

    def _on_process_ended(self) -> None:
        """Note the exits of processes that another launcher started, before that launcher reaps them."""
        self.process_watcher.exit_watcher.collect_exits()
        self._wake()
