"""The order of failures: which members failed by themselves, and which as a consequence."""

from __future__ import annotations

import os
import re
import signal

import msgspec

from allaboard.analysis.failures.closed_descriptors import has_closed_its_connections
from allaboard.analysis.failures.lost_peer import (
    aftermath_evidence,
    failed_in_handler,
    has_lost_peer,
)
from allaboard.analysis.parameter_servers import AUXILIARY_JOBS
from allaboard.facts import Evidence, Interruption, JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE)
"""Signals that end native code with a memory error, an illegal instruction or a failed assertion."""
_REPLACED_BY_INTERRUPT = re.compile(r"ORIGINAL \w+ REPLACED BY KeyboardInterrupt\b")
"""Message of pybind11 for an error of native code (TensorFlow's) that a KeyboardInterrupt replaced."""
USER_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that batch systems send to all processes of a job; they end a program without a handler."""
OWN_FAULT_SIGNALS = {
    signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, *USER_SIGNALS
}  # fmt: skip
"""Signals that no survivor of another's failure gets, except from a launcher that has waited for its exit."""


def known_exit_status(wait_status: int) -> tuple[int | None, int | None]:
    """Return exit code and signal of a process that another launcher started, each None if it proves nothing.

    ``wait_status`` is that of waitpid(2). A code other than 0, or a signal that the launcher may have sent,
    proves nothing about this process: the failure of one rank makes the launcher end the others, and a
    program may retry a child that failed.
    """
    signal_number = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else None
    return (
        0 if wait_status == 0 else None,
        signal_number if signal_number in OWN_FAULT_SIGNALS else None,
    )


class FailureOrder(msgspec.Struct, frozen=True):
    """The failed members of a job, divided into causes and consequences."""

    root_failures: tuple[Member, ...]
    """Members whose failure has no earlier cause in this job, oldest first."""
    consequences: tuple[Member, ...]
    """Members that failed because of these."""
    evaluators: tuple[Member, ...] = ()
    """Evaluators that failed by themselves; their failure has no consequences."""

    @property
    def own_failures(self) -> tuple[Member, ...]:
        """Return all members whose failure is their own."""
        return self.root_failures + self.evaluators

    def consequence_evidence(self, member: Member) -> tuple[Evidence, ...]:
        """Return which members failed as a consequence of this member's failure, and what these raised
        besides; () if none did."""
        consequences = self.consequences if member not in self.evaluators else ()
        ranks = [str(m.who.rank) for m in consequences if m.who.rank >= 0]
        listed = " and ".join(filter(None, (", ".join(ranks[:-1]), *ranks[-1:])))
        ranked = [f"rank{'s' if len(ranks) > 1 else ''} {listed}"] if ranks else []
        names = ", ".join([*ranked, *(m.who.name for m in consequences if m.who.rank < 0)])
        if not names:
            return ()
        return (
            Evidence(f"{names} failed as a consequence", "order of exits"),
            *aftermath_evidence(consequences),
        )


def has_failed(member: Member) -> bool:
    """Return True if the member ended by an exception, was killed, or exited with a code other than 0.

    A member that allaboard itself ended did not fail, whether on this host or on one that was interrupted.
    """
    end = member.exit
    if _ended_on_request(member):
        return False
    if end is not None and end.ours and (member.raised is None or was_interrupted(member)):
        return False  # also where it took the signal for Ctrl-C
    if end is not None and end.code == 0:
        return False  # notebooks and test runners leave an exception in sys.last_value and end well
    if member.raised is not None:
        return member.raised.type not in ("SystemExit", "KeyboardInterrupt") or _ended_badly(member)
    return _ended_badly(member)


def _ended_on_request(member: Member) -> bool:
    """Return True if the member ended after its agent was asked to end the job, or a moment before.

    A batch system may signal all processes of a host at once.
    """
    if member.interrupted is None or (member.raised is None and member.exit is None):
        return False
    return failed_at(member) >= member.interrupted - SAME_CAUSE_WINDOW_S


def interruption_behind(view: JobView, member: Member) -> Interruption | None:
    """Return the interruption of another host that may have made this member fail, or None."""
    failed_time = failed_at(member)
    return next(
        (k for k in view.interruptions if failed_time >= k.interrupted_at - INTERRUPTION_NOTICE_S),
        None,
    )


INTERRUPTION_NOTICE_S = 3.0
"""Most seconds between the failure of its peers and the news that a host was interrupted."""


def was_interrupted(member: Member) -> bool:
    """Return True if SIGINT ended the member, so that the line at which it was is not to blame."""
    error = member.raised
    if error is None:
        return False
    if error.type == "KeyboardInterrupt":
        raised_by_user_code = error.where is not None and error.where.text.startswith("raise ")
        return not raised_by_user_code
    return bool(_REPLACED_BY_INTERRUPT.search(error.message))


def failed_at(member: Member) -> float:
    """Return when the member failed (s, CLOCK_MONOTONIC): when it raised, else when it ended."""
    return member.raised.raised_at if member.raised is not None else ended_at(member)


def ended_at(member: Member) -> float:
    """Return when a member that has ended began to exit (s, CLOCK_MONOTONIC).

    The interpreter's shutdown closes its connections, and its peers fail, seconds before the process is gone.
    """
    assert member.exit is not None
    if member.phase is Phase.LEAVING:
        return min(member.phase_since, member.exit.ended_at)
    return member.exit.ended_at


def crashed_at_exit(member: Member) -> bool:
    """Return True if native code crashed while the interpreter shut down after a training without error."""
    end = member.exit
    crashed = end is not None and end.signal in (signal.SIGABRT, signal.SIGSEGV) and not end.ours
    has_trained = member.step > 0 or member.ops > 0
    return crashed and member.phase is Phase.LEAVING and member.raised is None and has_trained


@cached_per_view
def order_failures(view: JobView) -> FailureOrder:
    """Divide the failed members of a job into causes and consequences.

    A launcher only passes on a child's exit, so it is left out unless nothing else failed. An evaluator is
    nobody's peer.
    """
    failed_with_launchers = [m for m in view.members if has_failed(m) and not crashed_at_exit(m)]
    failed_members = sorted(
        [m for m in failed_with_launchers if not m.launcher] or failed_with_launchers, key=failed_at
    )
    ordered = [m for m in failed_members if m.who.job not in AUXILIARY_JOBS]
    # Peers notice a closed connection before the kernel reports the exit to us: the first failure that does
    # not mention a peer is the cause, whichever was seen first.
    own_failures = _without_aftermath([m for m in ordered if not has_lost_peer(m)])
    # If a host was interrupted, that is the cause.
    # Who closes its own connections may outlive the peers that lost them.
    own_failures.sort(key=has_closed_its_connections, reverse=True)
    first_failure = next(iter(own_failures), None)
    first_failure = (
        first_failure
        if first_failure is not None and interruption_behind(view, first_failure) is None
        else None
    )
    # A launcher sends SIGKILL to survivors in the end, so below one that signal proves no failure.
    workers_with_launcher = {m.worker for m in view.members if m.launcher}
    root_failures = [
        m
        for m in own_failures
        if _is_own_failure(
            m, is_first=m is first_failure, has_launcher=m.worker in workers_with_launcher
        )
    ]
    evaluators = [
        m
        for m in failed_members
        if m.who.job in AUXILIARY_JOBS
        and _is_own_failure(
            m, is_first=m is failed_members[0], has_launcher=m.worker in workers_with_launcher
        )
    ]
    consequences = [m for m in failed_members if m not in root_failures and m not in evaluators]
    return FailureOrder(tuple(root_failures), tuple(consequences), tuple(evaluators))


def _without_aftermath(failed: list[Member]) -> list[Member]:
    """Return the members without those that failed while they handled the loss of one of the others.

    A job that goes on after such a loss may do so below the handler. So its exceptions are the aftermath of a
    failure only if another member has failed for a reason of its own.
    """
    own = [m for m in failed if not failed_in_handler(m) and _ended_by_own_fault(m)]
    return [m for m in failed if not failed_in_handler(m)] if own else failed


def _ended_by_own_fault(member: Member) -> bool:
    end = member.exit
    if member.raised is not None or end is None:
        return member.raised is not None
    return end.code is not None or end.signal in OWN_FAULT_SIGNALS


def crash_beside(view: JobView, member: Member) -> Member | None:
    """Return a member in which native code crashed at about the time at which this one failed, or None.

    Which of the two was first cannot be told: a crash takes its time, above all with a core dump.
    """
    return next(
        (
            m
            for m in view.members
            if m is not member
            and m.exit is not None
            and not m.exit.ours
            and m.exit.signal in CRASH_SIGNALS
            and not crashed_at_exit(m)
            and abs(m.exit.ended_at - failed_at(member)) < CRASH_DELAY_S
        ),
        None,
    )


CRASH_DELAY_S = 5.0
"""Most seconds that a crash lasts, from the fault to the end of the process."""


def is_failure_settling(view: JobView, member: Member) -> bool:
    """Return True while a failure is so recent that others may yet show the same, or fail because of it.

    They are then reported together.
    """
    return not view.ended and view.now - failed_at(member) < SAME_CAUSE_WINDOW_S


SAME_CAUSE_WINDOW_S = 1.0
"""Seconds within which one cause has shown itself in all members that it affects."""


def must_delay_report(view: JobView, member: Member) -> bool:
    """Return True if an exit rule must not report this failure yet.

    It always waits for a moment (`is_failure_settling`). A failure before init is left to JOIN003 while
    others are alive and may yet reach init and wait there; after MAX_REPORT_DELAY_S it is reported anyway.
    """
    if is_failure_settling(view, member):
        return True
    if member.who.job in AUXILIARY_JOBS:
        return False  # nobody meets it
    if (member.round > 0 and member.phase is not Phase.ARRIVED) or (
        view.launched == 1 and not view.joined
    ):
        return False
    # Members held at the gate make it JOIN003's finding, also while the job is being ended for it.
    others_at_gate = any(m.phase is Phase.ARRIVED for m in view.alive)
    others_at_gate |= view.ending and any(m.declared is not None for m in view.members)
    others_coming = any(m.in_user_code and not m.launcher for m in view.alive)
    return others_at_gate or (others_coming and view.now - failed_at(member) < MAX_REPORT_DELAY_S)


MAX_REPORT_DELAY_S = 4.0
"""Most seconds that the report of a failure before init is delayed for members that may still reach init."""


def _is_own_failure(member: Member, is_first: bool, has_launcher: bool) -> bool:
    """Return True if the failure is the member's own.

    That is the first failure that does not mention a peer, every exception that does not, and every signal
    that survivors of another's failure do not get. Below a launcher, which sends SIGKILL to survivors in the
    end, that signal counts only if the out-of-memory killer sent it.
    """
    if is_first or member.raised is not None or has_closed_its_connections(member):
        return True
    if has_launcher and member.exit is not None and member.exit.signal == signal.SIGKILL:
        return member.exit.oom
    return member.exit is not None and (member.exit.signal in OWN_FAULT_SIGNALS or member.exit.oom)


def _ended_badly(member: Member) -> bool:
    end = member.exit
    return end is not None and (end.signal is not None or end.code not in (0, None))
