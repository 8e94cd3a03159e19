"""What an agent keeps ready for the restart of a task or for the next round: processes, and snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allaboard.agent.announcer import Announcer
from allaboard.agent.options import Options
from allaboard.agent.ps_snapshot_process import SnapshotProcess
from allaboard.agent.standby_process import StandbyProcess
from allaboard.agent.worker_processes import WorkerProcesses
from allaboard.launch.fork_server_link import FORK_SERVER_NUMBER
from allaboard.launch.local_workers import Launch
from allaboard.launch.standby_ranks import StandbyRanks
from allaboard.policy.restart.standby_start import is_standby_due
from allaboard.protocol.job_state_port import JobStatusPort


class Standbys:
    """The processes that are started ahead in one attempt; ``restarts_before`` starts were before it.

    ``ranks`` outlive the attempt: they are what the next round starts with.
    """

    def __init__(
        self,
        launch: Launch,
        options: Options,
        workers: WorkerProcesses,
        announcer: Announcer,
        wake: Callable[[], None],
        ranks: StandbyRanks,
        restarts_before: int,
    ) -> None:
        self._plan = launch.plan
        self._policy = options.restarts
        self._announcer = announcer
        self._restarts_before = restarts_before
        self._ranks = ranks
        ranks.begin_round(launch, workers)
        workers.standing_by = ranks.ready_pids
        self.task = StandbyProcess(launch, workers, options.restarts)
        self.snapshots = SnapshotProcess(launch, workers, announcer, wake)
        workers.add_helper(FORK_SERVER_NUMBER, self._report_unfit_server)

    def start_if_due(self, status: JobStatusPort, now: float) -> None:
        """Start what is due in this state of the job."""
        if self._plan.tasks_may_return:
            view = status.view(now)
            self.task.start_if_due(view, self._restarts_before + len(status.task_returns))
            self.snapshots.start_if_due(view)
        if self._plan.standby_ranks:
            line = self._ranks.advance(
                lambda failures: is_standby_due(
                    status.view(now), self._policy, self._restarts_before, 0.0, failures
                )
            )
            if line:
                self._announcer.write_line(line)

    def _report_unfit_server(self, message: dict[str, Any]) -> None:
        if "failed" in message:
            self._announcer.write_line(
                f"--warm: {message['why']}; the workers start in the ordinary way"
            )

    def close(self) -> None:
        """End what was started for this attempt; ranks that have finished their imports stay."""
        self.task.close()
        self._ranks.drop_importing()
        self.snapshots.close()
