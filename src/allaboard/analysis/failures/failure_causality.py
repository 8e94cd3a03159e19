"""Among the members that failed: who began it, and who fell because of it."""

from __future__ import annotations

import os
import re
import signal

import msgspec

from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.analysis.parameter_servers.parameter_servers import AROUND
from allaboard.facts import Evidence, Interruption, JobView, Member, Phase
from allaboard.facts.memo import cached_per_view

CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE)
"""How native code ends that does what it must not."""
_REPLACED_BY_INTERRUPT = re.compile(r"ORIGINAL \w+ REPLACED BY KeyboardInterrupt\b")
"""What pybind11 raises of an error of native code (TensorFlow's) into which a KeyboardInterrupt came."""
USER_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)
"""What is sent to programs that wait for it, all of a job together; it ends those that do not."""
OWN_FAULT_SIGNALS = {
    signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, *USER_SIGNALS
}  # fmt: skip
"""Which nobody sends to the survivors of another's failure, but a launcher that has waited for their end."""


def known_exit_status(wait_status: int) -> tuple[int | None, int | None]:
    """Code and signal of a process that somebody else started, as far as they say something of it;
    ``status`` is as waitpid(2) gives it. Not another code than 0, nor a signal that its launcher may have
    sent: what one rank met ends the others, and a program may start a child that failed again by itself."""
    signal_number = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else None
    return (
        0 if wait_status == 0 else None,
        signal_number if signal_number in OWN_FAULT_SIGNALS else None,
    )


class FailureOrder(msgspec.Struct, frozen=True):
    """``began``: those whose failure has no earlier cause here, oldest first; ``fell``: the others;
    ``aside``: evaluators that failed by themselves, for which nobody falls."""

    root_failures: tuple[Member, ...]
    consequences: tuple[Member, ...]
    evaluators: tuple[Member, ...] = ()

    @property
    def own_failures(self) -> tuple[Member, ...]:
        """All whose failure is their own."""
        return self.root_failures + self.evaluators

    def consequence_evidence(self, member: Member) -> tuple[Evidence, ...]:
        """Who fell because of what this one began; nothing where nobody did."""
        consequences = self.consequences if member not in self.evaluators else ()
        ranks = ", ".join(str(m.who.rank) for m in consequences if m.who.rank >= 0)
        unranked_names = ", ".join(m.who.name for m in consequences if m.who.rank < 0)
        names = ", ".join(filter(None, (f"rank {ranks}" if ranks else "", unranked_names)))
        return (Evidence(f"{names} fell because of it", "order of ends"),) if names else ()


def has_failed(member: Member) -> bool:
    """Whether it raised at the top, was killed, or ended with another code than 0. What allaboard
    itself ended did not fail, on this host or on one that was interrupted."""
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
    """Whether it ended once its agent had been asked for the end, or a moment before: a batch system may tell
    all processes of a host at once."""
    if member.interrupted is None or (member.raised is None and member.exit is None):
        return False
    return failed_at(member) >= member.interrupted - SAME_CAUSE_WINDOW_S


def interruption_behind(view: JobView, member: Member) -> Interruption | None:
    """The interruption of another host because of which this member may have failed."""
    failed_time = failed_at(member)
    return next(
        (k for k in view.interruptions if failed_time >= k.at - INTERRUPTION_NOTICE_S), None
    )


INTERRUPTION_NOTICE_S = 3.0
"""Seconds from the fall of its peers within which it is heard that a host was interrupted, at the most: it is
told at once."""


def was_interrupted(member: Member) -> bool:
    """Whether somebody ended it by SIGINT: the line that it was at is no fault."""
    error = member.raised
    if error is None:
        return False
    if error.type == "KeyboardInterrupt":
        raised_by_user_code = error.where is not None and error.where.text.startswith("raise ")
        return not raised_by_user_code
    return bool(_REPLACED_BY_INTERRUPT.search(error.message))


def failed_at(member: Member) -> float:
    """When it failed (s, monotonic): when it raised, else when it ended."""
    return member.raised.at if member.raised is not None else ended_at(member)


def ended_at(member: Member) -> float:
    """When a member that has ended began to end: the interpreter's shutdown closes its connections,
    and its peers fall, seconds before the process is gone."""
    assert member.exit is not None
    if member.phase is Phase.LEAVING:
        return min(member.phase_since, member.exit.at)
    return member.exit.at


def crashed_at_exit(member: Member) -> bool:
    """Whether native code crashed while the interpreter shut down after a training without error."""
    end = member.exit
    crashed = end is not None and end.signal in (signal.SIGABRT, signal.SIGSEGV) and not end.ours
    worked = member.step > 0 or member.ops > 0
    return crashed and member.phase is Phase.LEAVING and member.raised is None and worked


@cached_per_view
def order_failures(view: JobView) -> FailureOrder:
    """Splits the failed members of a job. A launcher only passes on a child's end, and is left out
    unless it is all that failed; an evaluator is nobody's peer."""
    failed_with_launchers = [m for m in view.members if has_failed(m) and not crashed_at_exit(m)]
    failed_members = sorted(
        [m for m in failed_with_launchers if not m.launcher] or failed_with_launchers, key=failed_at
    )
    ordered = [m for m in failed_members if m.who.job not in AROUND]
    # Peers notice a closed connection before the kernel tells us of the end: the first failure that
    # does not speak of a peer is the beginning, whichever was seen first.
    own_failures = [m for m in ordered if not has_lost_peer(m)]
    # Where a host was interrupted, that is the beginning.
    first_failure = next(iter(own_failures), None)
    first_failure = (
        first_failure
        if first_failure is not None and interruption_behind(view, first_failure) is None
        else None
    )
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
        if m.who.job in AROUND
        and _is_own_failure(
            m, is_first=m is failed_members[0], has_launcher=m.worker in workers_with_launcher
        )
    ]
    consequences = [m for m in failed_members if m not in root_failures and m not in evaluators]
    return FailureOrder(tuple(root_failures), tuple(consequences), tuple(evaluators))


def is_failure_settling(view: JobView, member: Member) -> bool:
    """Whether to wait a moment before this failure is told: others may yet show the same, or fall
    because of it, and are then told with it."""
    return not view.ended and view.now - failed_at(member) < SAME_CAUSE_WINDOW_S


SAME_CAUSE_WINDOW_S = 1.0
"""Seconds in which what one cause does to several members has shown."""


def must_delay_report(view: JobView, member: Member) -> bool:
    """Whether an exit rule has to wait with this failure: for a moment always; and before init, where
    JOIN003 tells it, while others are alive and may yet come to init and wait there. After
    ``UNDECIDED`` s it is told anyway."""
    if is_failure_settling(view, member):
        return True
    if member.who.job in AROUND:
        return False  # nobody meets it
    if (member.round > 0 and member.phase is not Phase.ARRIVED) or (
        view.launched == 1 and not view.joined
    ):
        return False
    others_at_gate = any(m.phase is Phase.ARRIVED for m in view.alive)
    others_at_gate |= view.ending and any(m.declared is not None for m in view.members)
    others_coming = any(m.in_user_code and not m.launcher for m in view.alive)
    return others_at_gate or (others_coming and view.now - failed_at(member) < MAX_REPORT_DELAY_S)


MAX_REPORT_DELAY_S = 4.0
"""Seconds."""


def _is_own_failure(member: Member, is_first: bool, has_launcher: bool) -> bool:
    """A failure of its own: the first that does not speak of a peer, every exception that does not,
    and every kill that nobody sends to the survivors of another's failure; ``below`` a launcher, which does
    in the end, only a crash."""
    if is_first or member.raised is not None:
        return True
    if has_launcher and member.exit is not None and member.exit.signal == signal.SIGKILL:
        return member.exit.oom
    return member.exit is not None and (member.exit.signal in OWN_FAULT_SIGNALS or member.exit.oom)


def _ended_badly(member: Member) -> bool:
    end = member.exit
    return end is not None and (end.signal is not None or end.code not in (0, None))
