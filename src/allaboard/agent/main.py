"""The agent: one asyncio loop, from the launch to the report."""

from __future__ import annotations

import asyncio
import gc
import os
import traceback
from typing import Any

from allaboard.agent import event_loop
from allaboard.agent.announcer import Announcer
from allaboard.agent.attempt import Attempt
from allaboard.agent.attempt_history import AttemptHistory
from allaboard.agent.background_check import BackgroundCheck
from allaboard.agent.coordinator_settings import end_policy
from allaboard.agent.exit_decision import decide_exit
from allaboard.agent.final_report import assemble_report
from allaboard.agent.journal import Journal
from allaboard.agent.options import Options
from allaboard.agent.output.progress_display import ProgressDisplay
from allaboard.agent.output.sidecar_notes import SidecarNotes
from allaboard.agent.output.terminal import Terminal
from allaboard.agent.report_page import write_report_page
from allaboard.agent.snapshot_export import export_snapshot
from allaboard.coordinator.progress_line import progress_line
from allaboard.facts import JobView, Outcome, Report
from allaboard.feed.feed_settings import FeedSettings
from allaboard.feed.job_feed import JobFeed
from allaboard.formats.secret_hints import redact
from allaboard.launch.local_workers import Launch, WorkerStartError, relaunch_workers
from allaboard.launch.sidecar_process import await_last_words
from allaboard.launch.signals import die_of
from allaboard.launch.standby_ranks import StandbyRanks
from allaboard.policy.restart.restart_policy import RESTART_NOT_ALLOWED, NoRestart
from allaboard.report.run_summary import closing_finding, location_line, summary_lines
from allaboard.schedulers.end_of_run import advice_lines, tell_scheduler
from allaboard.schedulers.job_signals import JobSignals

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
        self.terminal = Terminal(is_stdout_taken=options.events_path == "-")
        self.announcer = Announcer(
            Journal(launch.plan.run_dir), self.terminal, options.verbose, script, options.quiet
        )
        self.clock = self.announcer.clock
        self.background_check = BackgroundCheck(options.check_subject, launch.started_at)
        self.history = AttemptHistory(options.restarts)
        self.feed = JobFeed(
            feed_settings(launch, options),
            self.announcer,
            self.clock,
            progress_line,
            lambda text: self.announcer.journal.write_event(
                self.clock.utc(self.clock.monotonic()), text
            ),
        )
        self.announcer.audience = self.feed
        pipes = {sidecar.notes: sidecar.early_end for sidecar in options.sidecars}
        self.sidecar_notes = SidecarNotes(pipes, self.announcer.write_line)
        # An attached agent looks on beside a program whose terminal is its own.
        is_silent = options.quiet or options.attached
        self.progress_display = ProgressDisplay(
            self.terminal,
            self.feed,
            self.announcer.print_line,
            launch.started_at,
            "off" if is_silent else options.progress,
            end_policy(options),
            options.restarts.max_restarts,
        )
        self.signals = JobSignals(options.scheduler, self.clock)
        self.standby_ranks = StandbyRanks(launch.plan.standby_ranks)
        self.started_at = launch.started_at
        self.fatal_signal: int | None = None
        self.has_loop_failed = False

    async def run(self) -> int:
        """Watch the job to its end; return the exit code."""
        plan = self.launch.plan
        launched_at = self.clock.utc(self.launch.started_at)
        names = tuple(f"{job}-{index}" for job, index in plan.tasks)
        self.announcer.journal.write_start(
            launched_at,
            plan.job,
            tuple(plan.command),
            plan.size,
            self.options.wrapped,
            names,
            self.options.typed_options,
        )
        asyncio.get_running_loop().set_exception_handler(self._on_loop_error)
        await self.feed.start()
        self.sidecar_notes.start()
        while True:
            attempt = Attempt(
                self.launch,
                self.options,
                self.announcer,
                self.background_check,
                self.history.restart_count,
                self.feed,
                self.progress_display,
                self.signals,
                self.standby_ranks,
            )
            await attempt.run()
            await attempt.close()
            if not await self._is_over(attempt):
                continue
            self.standby_ranks.close()
            try:
                outcome = self.history.outcome, self.history.reason
                self.sidecar_notes.expect_end()
                await self.feed.finish(self.clock.monotonic(), attempt.job.status, outcome)
                speakers = [s.notes for s in self.options.sidecars if s.last_words_s]
                self.sidecar_notes.close(kept=speakers)
            except Exception:
                self._note_fault()
            return self._finish_run(attempt)

    async def _is_over(self, attempt: Attempt) -> bool:
        """Start the next round if there is one; return True if the job is over, also if an error of our
        own keeps it from being judged."""
        try:
            is_over = not await self._start_next_attempt(attempt)
            self.feed.set_history(self.history.reports, self.history.task_returns)
            return is_over
        except Exception:
            self._note_fault()
            if not self.history.reports:
                self.history.outcome, self.history.reason = attempt.end.plain_outcome
                self.history.interrupt_signal = attempt.end.interrupt_signal
            return True

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Write an error of a callback or of a task that nobody awaits to the journal; say it once."""
        now = self.clock.utc(self.clock.monotonic())
        error = context.get("exception")
        trace = "".join(traceback.format_exception(error)) if error is not None else ""
        self.announcer.journal.write_event(now, f"{context['message']}\n{trace}".rstrip())
        if not self.has_loop_failed:
            self.has_loop_failed = True
            self.announcer.write_line(
                f"internal error in allaboard, training continues: {error or context['message']!r}"
            )

    def _note_fault(self) -> None:
        """Write the error that is being handled to the journal, and say so in one line."""
        now = self.clock.utc(self.clock.monotonic())
        self.announcer.journal.write_event(now, traceback.format_exc())
        self.announcer.write_line("internal error in allaboard; the report is incomplete")

    async def _start_next_attempt(self, attempt: Attempt) -> bool:
        """Start the next round if there is one; return False if the job is over."""
        course, write_line = self.history, self.announcer.write_line
        ended = attempt.end.summarize()
        findings = attempt.job.status.findings
        leader_decision = attempt.end.leader_decision
        course.add_task_returns(
            leader_decision.task_returns
            if leader_decision is not None
            else attempt.job.status.task_returns
        )
        if leader_decision is not None:
            decision = course.adopt_decision(
                leader_decision.report, findings, attempt.end.remote_interruption
            )
        else:
            decision = course.decide_next(
                ended, findings, attempt.end.ending_signal, attempt.end.restart_hindrance
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
            course.cut_short(Outcome.INTERRUPTED, "interrupted", attempt.end.interrupt_signal)
            return False
        try:
            self.launch = relaunch_workers(self.launch, ended.number + 1, self.standby_ranks.take)
        except WorkerStartError as error:
            course.cut_short(Outcome.FAILED, str(error))
            return False
        if self.launch.plan.standby_ranks:
            stood_by = sum(1 for worker in self.launch.workers if worker.pid)
            write_line(
                f"{stood_by} of {self.launch.plan.size} workers stood by and have their imports done"
            )
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
            attempt.end.is_orphaned or self.history.outcome is not Outcome.COMPLETED
        ):
            self._export_snapshot()
        report = self._build_report(now, attempt)
        copy_error = journal.write_report(report, self.options.report_path)
        journal.write_failing_hosts(report.retry.hosts if report.retry is not None else ())
        is_silent = self.options.attached or (
            self.options.quiet and report.outcome == Outcome.COMPLETED
        )
        if not is_silent:
            self._print_summary(report)
        page_error = write_report_page(self.launch.plan.run_dir, report.findings)
        if page_error:
            journal.write_event(self.clock.utc(now), page_error)
        if not is_silent:
            self.announcer.print_line(location_line(report, not page_error))
        if error := self._close_signals(now, attempt):
            self.announcer.print_line(error)
        if copy_error:
            path = self.options.report_path
            self.announcer.print_line(f"the report is not written to {path}: {copy_error}")
        if journal.write_error:
            self.announcer.print_line(f"the run folder is incomplete: {journal.write_error}")
        for line in tell_scheduler(
            report, closing_finding(report), self.options.scheduler, os.environ
        ):
            self.announcer.print_line(line)
        terminal.close()
        journal.close()
        self.launch.remove_boxes()
        return report.exit_code

    def _close_signals(self, now: float, attempt: Attempt) -> str:
        """Show the scheduler that the job is over; return what could not be shown, or ""."""
        try:
            return self.signals.close(now, attempt.job.status)
        except Exception:
            self._note_fault()
            return ""

    def _print_summary(self, report: Report) -> None:
        """Print the last lines of the run."""
        advice = advice_lines(report, self.options.scheduler, os.environ)
        for line in [*summary_lines(report, RESTART_NOT_ALLOWED), *advice]:
            self.announcer.print_line(line)
        if (finding := closing_finding(report)) is not None:
            self.announcer.print_finding(finding)

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
        try:
            view = attempt.job.status.view(now)
        except Exception:
            self._note_fault()
            view = JobView(now=now, launched=plan.size, members=())
        decision = decide_exit(
            self.options,
            course,
            findings,
            attempt.job.status.findings,
            view,
            attempt.job.status.exit_of(0) if self.options.passes_through else None,
        )
        self.fatal_signal = decision.fatal_signal
        report = assemble_report(
            job=plan.job,
            command=tuple(plan.command),
            outcome=course.outcome,
            reason=course.reason,
            code=decision.code,
            retry=decision.advice,
            started=self.clock.utc(self.started_at),
            seconds=now - self.started_at,
            run_dir=str(plan.run_dir),
            view=view,
            findings=findings,
            notes=tuple(self.announcer.notes),
            rounds=tuple(course.reports),
            returns=course.task_returns,
            options=self.options.typed_options,
            commit=self.background_check.commit,
        )
        return redact(report)


def feed_settings(launch: Launch, options: Options) -> FeedSettings:
    """Return what the feed of this run is made with."""
    plan = launch.plan
    return FeedSettings(
        job=plan.job,
        command=redact(tuple(plan.command)),
        folder=plan.run_dir,
        started_at=launch.started_at,
        host=os.uname().nodename,
        address=options.feed_address,
        events_path=options.events_path,
        secret=options.secret,
        tls=options.tls,
        only_observes=options.observe,
        is_joined=options.joined is not None,
    )


def reduce_gc_frequency() -> None:
    """Make the garbage collector run rarely.

    The reports of thousands of hosts are kept and hold no cycles; walking through them, and through modules
    and rules, again and again would cost more than anything else that the agent does.
    """
    gc.freeze()
    gc.enable()  # the launch has disabled it
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
    await_last_words(options.sidecars)
    agent.sidecar_notes.read_last(agent.announcer.print_after_end)
    signal = agent.fatal_signal
    if signal is not None:
        die_of(signal)
    # The report is written: a thread in a hanging disk or name server must not keep the process alive.
    if event_loop.has_stuck_thread():
        event_loop.exit_now(code)
    return code
