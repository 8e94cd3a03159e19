"""The agent: one asyncio loop, from the launch to the report."""

from __future__ import annotations

import gc

from allaboard.agent import event_loop
from allaboard.agent.announcer import Announcer
from allaboard.agent.attempt import Attempt
from allaboard.agent.attempt_history import AttemptHistory
from allaboard.agent.background_check import BackgroundCheck
from allaboard.agent.final_report import assemble_report, shell_exit_code
from allaboard.agent.journal import Journal
from allaboard.agent.options import Options
from allaboard.agent.snapshot_export import export_snapshot
from allaboard.agent.terminal import Terminal
from allaboard.facts import Outcome, Report
from allaboard.launch.local_workers import Launch, WorkerStartError, relaunch_workers
from allaboard.launch.signals import die_of
from allaboard.policy.restart.restart_policy import RESTART_NOT_ALLOWED, NoRestart
from allaboard.report.run_summary import summary_lines

GC_THRESHOLDS = (10_000, 20, 20)
"""Thresholds of the three generations, see gc.set_threshold."""
SCRIPT_READ_GRACE_S = 2.0
"""Seconds to wait for the background check if the job ended before it was done."""


class Agent:
    """Watches one launched job, round after round, to its end.

    ``fatal_signal``: signal that killed the only worker, or None.
    """

    def __init__(self, launch: Launch, options: Options) -> None:
        self.launch = launch
        self.options = options
        script = options.check_subject.script
        self.terminal = Terminal()
        self.announcer = Announcer(
            Journal(launch.plan.run_dir), self.terminal, options.verbose, script
        )
        self.clock = self.announcer.clock
        self.background_check = BackgroundCheck(options.check_subject, launch.started_at)
        self.history = AttemptHistory(options.restarts)
        self.started_at = launch.started_at
        self.fatal_signal: int | None = None

    async def run(self) -> int:
        """Watch the job to its end; return the exit code."""
        plan = self.launch.plan
        launched_at = self.clock.utc(self.launch.started_at)
        names = tuple(f"{job}-{index}" for job, index in plan.tasks)
        self.announcer.journal.write_start(
            launched_at, plan.job, tuple(plan.command), plan.size, self.options.wrapped, names
        )
        while True:
            attempt = Attempt(
                self.launch,
                self.options,
                self.announcer,
                self.background_check,
                self.history.restart_count,
            )
            await attempt.run()
            await attempt.close()
            if not await self._start_next_attempt(attempt):
                return self._finish_run(attempt)

    async def _start_next_attempt(self, attempt: Attempt) -> bool:
        """Start the next round if there is one; return False if the job is over."""
        course, write_line = self.history, self.announcer.write_line
        ended = attempt.summarize_end()
        findings = attempt.job.status.findings
        leader_decision = attempt.leader_decision
        course.add_task_returns(
            leader_decision.task_returns
            if leader_decision is not None
            else attempt.job.status.task_returns
        )
        if leader_decision is not None:
            decision = course.adopt_decision(
                leader_decision.report, findings, attempt.remote_interruption
            )
        else:
            decision = course.decide_next(
                ended, findings, attempt.ending_signal, attempt.restart_hindrance
            )
        attempt.leave_other_hosts(course.reports[-1])
        self.announcer.journal.write_round(
            self.clock.utc(self.clock.monotonic()), course.reports[-1]
        )
        if isinstance(decision, NoRestart):
            return False
        delay = f" in {decision.delay:g} s" if decision.delay else ""
        write_line(f"round {ended.number + 1} starts{delay}: {decision.reason}")
        await attempt.wait_until_clear()
        if await attempt.interrupted_within(decision.delay):
            course.cut_short(Outcome.INTERRUPTED, "interrupted", attempt.interrupt_signal)
            return False
        try:
            self.launch = relaunch_workers(self.launch, ended.number + 1)
        except WorkerStartError as error:
            course.cut_short(Outcome.FAILED, str(error))
            return False
        return True

    def _finish_run(self, attempt: Attempt) -> int:
        """Write the report, print the summary, and remove what was held in memory; return the exit code."""
        now = self.clock.monotonic()
        self.announcer.announce_script_findings(
            now, self.background_check.wait_for_findings(SCRIPT_READ_GRACE_S)
        )
        journal, terminal = self.announcer.journal, self.terminal
        if self.background_check.read_error:
            journal.write_event(self.clock.utc(now), self.background_check.read_error)
        if self.launch.plan.snapshot_interval_s and (
            attempt.is_orphaned or self.history.outcome is not Outcome.COMPLETED
        ):
            self._export_snapshot()
        report = self._build_report(now, attempt)
        journal.write_report(report, self.options.report_path)
        for line in summary_lines(report, RESTART_NOT_ALLOWED) if not self.options.attached else ():
            terminal.write_line(f"allaboard: {line}")
        if journal.write_error:
            terminal.write_line(f"allaboard: the run folder is incomplete: {journal.write_error}")
        terminal.close()
        journal.close()
        self.launch.remove_boxes()
        return report.exit_code

    def _export_snapshot(self) -> None:
        """Copy the newest snapshot of the servers' variables to disk, since the job did not complete here."""
        try:
            exported = export_snapshot(self.launch.boxes, self.launch.plan.run_dir / "snapshot")
        except OSError as error:
            self.announcer.write_line(f"the newest snapshot could not be copied to disk: {error}")
            return
        if exported is not None:
            self.announcer.write_line(
                f"the servers' values after step {exported.step} are left in {exported.folder}; "
                "to continue from them, pass it to MonitoredTrainingSession as checkpoint_dir="
            )

    def _build_report(self, now: float, attempt: Attempt) -> Report:
        plan, course = self.launch.plan, self.history
        findings = course.findings + self.announcer.script_findings
        view = attempt.job.status.view(now)
        code = self.options.exit_code_of(course.outcome, findings, course.interrupt_signal, view)
        single_exit = attempt.job.status.exit_of(0) if self.options.passes_through else None
        if single_exit is not None and course.outcome is Outcome.FAILED:
            # A single worker that exited with 0 passes its 0 through, although the job failed elsewhere: its
            # launcher judges what that means.
            ended_well = single_exit.code == 0 and not self.options.restarts.allowed
            code, self.fatal_signal = (
                0 if ended_well else shell_exit_code(single_exit),
                single_exit.signal,
            )
        return assemble_report(
            job=plan.job,
            command=tuple(plan.command),
            outcome=course.outcome,
            reason=course.reason,
            code=code,
            started=self.clock.utc(self.started_at),
            seconds=now - self.started_at,
            run_dir=str(plan.run_dir),
            view=view,
            findings=findings,
            notes=tuple(self.announcer.notes),
            rounds=tuple(course.reports),
            returns=course.task_returns,
        )


def reduce_gc_frequency() -> None:
    """Make the garbage collector run rarely.

    The reports of thousands of hosts are kept and hold no cycles; walking through them, and through modules
    and rules, again and again would cost more than anything else that the agent does.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def run_agent(launch: Launch, options: Options) -> int:
    """Watch what was launched until it has ended; return the exit code of allaboard.

    If one process was started as it is and a signal killed it, allaboard dies of that signal, too.
    """

    reduce_gc_frequency()

    async def main() -> tuple[int, Agent]:
        agent = Agent(launch, options)
        return await agent.run(), agent

    code, agent = event_loop.run_to_end(main())
    # Whoever waits for this command may count on no process of the job being left.
    agent.launch.close_and_wait()
    signal = agent.fatal_signal
    if signal is not None:
        die_of(signal)
    # The report is written: a thread in a hanging disk or name server must not keep the process alive.
    if event_loop.has_stuck_thread():
        event_loop.exit_now(code)
    return code
