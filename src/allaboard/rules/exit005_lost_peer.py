"""Workers lost the connection to a peer, and no earlier failure is known.

## Why it matters
`Connection closed by peer` is all that remains when the cause is not on this host: a broken link, a peer on
another machine that died, or a timeout that expired while a rank was stuck. If a timeout expired and one rank
had made fewer calls in that group than all others, that is the rank for which they waited.

## What to do
Look at the other hosts' logs and at the network between them. If a hang was reported before, that is the
cause, and this is its end. If a rank had just exited with an unknown exit code, read the end of its log: only
its parent process knows the exit code. If all ranks had joined a second time at the same port, give each init
a port of its own: the ranks find the earlier addresses in a store that is still open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from allaboard.analysis.collectives.absent_from_collective import (
    find_absent_from_call,
    members_that_lost_a_peer,
)
from allaboard.analysis.collectives.collective_mismatch import describe_group
from allaboard.analysis.failures.failure_causality import (
    ended_at,
    failed_at,
    has_failed,
    interruption_behind,
    order_failures,
)
from allaboard.analysis.failures.lost_hosts import LostHost, find_lost_hosts
from allaboard.analysis.failures.lost_leader import find_lost_leader, is_loss_unchecked
from allaboard.analysis.failures.lost_peer import peer_loss_message
from allaboard.analysis.failures.mismatch_errors import find_mismatch_error
from allaboard.analysis.log_ends.exception_text import without_boilerplate
from allaboard.analysis.member_names import name_members
from allaboard.analysis.roll_call.reinit import (
    OWN_PORT_ADVICE,
    may_meet_earlier_store,
    reinit_evidence,
)
from allaboard.analysis.stalls.early_exit import EXIT_NOTICE_DELAY_S, find_early_exits
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Interruption, JobView, Member, Phase
from allaboard.facts.samples import (
    EADDRINUSE,
    PEER_LOST,
    USER,
    ended_member,
    member_with_calls,
    sample_job,
    sample_member,
    sample_signature,
    sample_stack,
    waiting_member,
)

SETTLE_S, SETTLE_SEVERAL_HOSTS_S = 3.0, 3.7
"""Seconds for another member's own failure to appear before the cause is called unknown; on several hosts,
until a lost host would be known."""
SETTLE_KNOWN_ABSENT_S = 1.0
"""The same (s) if it is known which member was absent and where it was, so that only its death may still
appear."""


def check(view: JobView) -> Iterator[Claim]:
    lost = members_that_lost_a_peer(view)
    if (
        not lost
        or order_failures(view).root_failures
        or any(find_mismatch_error(m) is not None for m in lost)
    ):
        return
    first_failed = min(lost, key=failed_at)
    lost_leader = find_lost_leader(view)
    if is_loss_unchecked(view) or (lost_leader is not None and lost_leader.victims):
        return  # EXIT012 is the better answer, now or in a moment
    if interruption_behind(view, first_failed) is not None:
        return  # the interruption is reported
    if view.ending_since is not None and failed_at(first_failed) >= view.ending_since:
        return  # allaboard ended its peers, one slightly before the other
    exited_well = [
        m for m in view.members if m.exit is not None and m.exit.code == 0 and m.round > 0
    ]
    stopped = [m for m in view.alive if m.is_stopped]
    # A member in its shutdown has closed its connections; how it exits is known only later.
    leaving = [m for m in view.alive if m.phase is Phase.LEAVING and not has_failed(m)]
    lost_hosts = find_lost_hosts(view)
    absent, key, call = find_absent_from_call(view, lost)
    is_early = view.now - failed_at(first_failed) < _settle_s(view, absent) and not view.ended
    if exited_well or leaving or stopped or any(g.victims for g in lost_hosts) or is_early:
        return
    error_evidence = Evidence(
        without_boilerplate(peer_loss_message(first_failed))[:300],
        f"{first_failed.who.name}, the first to fail",
    )
    if find_early_exits(view) is not None:
        return  # EXIT004 is the better answer
    unheard = [m for m in view.members if m.ended_unobserved and not m.launcher and m.round > 0]
    exited_before = [
        m for m in unheard if ended_at(m) <= failed_at(first_failed) + EXIT_NOTICE_DELAY_S
    ]
    if exited_before:
        yield _claim_unknown_exit(lost, error_evidence, exited_before)
        return
    if absent:
        yield _claim_timeout(
            lost, error_evidence, absent, f"call {call} of {describe_group(view, key)}"
        )
        return
    yield _claim_no_cause(view, lost, error_evidence, lost_hosts)


def _settle_s(view: JobView, absent: Sequence[Member]) -> float:
    """Return for how long (s) after the first failure another cause may still become known."""
    if absent and all(m.stack is not None or not m.alive for m in absent):
        return SETTLE_KNOWN_ABSENT_S
    return SETTLE_SEVERAL_HOSTS_S if view.joined else SETTLE_S


def _claim_no_cause(
    view: JobView,
    lost: tuple[Member, ...],
    error_evidence: Evidence,
    lost_hosts: Iterable[LostHost],
) -> Claim:
    first_failed = min(lost, key=failed_at)
    rejoined = may_meet_earlier_store(view, lost)
    return Claim(
        summary=f"{len(lost)} member{'s' * (len(lost) > 1)} lost the connection to a peer; no earlier "
        "failure is known",
        who=tuple(m.who for m in lost),
        evidence=(
            error_evidence,
            *(
                Evidence(
                    f"no message for {failed_at(first_failed) - g.last_heard_at:.0f} s by then",
                    g.host,
                )
                for g in lost_hosts
            ),
            *(reinit_evidence(view, lost) if rejoined else ()),
        ),
        fix=OWN_PORT_ADVICE
        if rejoined
        else "look at the other hosts' logs, and at the network between them"
        if view.joined or any(m.declared is not None and not m.declared.local for m in lost)
        else "read the ends of all workers' logs: one exited, or arrived after the others' timeout",
        certainty=Certainty.UNKNOWN,
        since=failed_at(first_failed),
    )


def _claim_unknown_exit(
    lost: Sequence[Member], error_evidence: Evidence, exited: list[Member]
) -> Claim:
    """Report a member that had just exited, and whose exit code only its parent knows."""
    return Claim(
        summary=f"{name_members(lost)} lost the connection to a peer: {name_members(exited)} had exited "
        "(exit code unknown)",
        who=tuple(m.who for m in exited),
        evidence=(
            error_evidence,
            Evidence("no uncaught exception, and its interpreter did not finish", "black box"),
        ),
        fix=f"read the end of the output of {name_members(exited)}, and what its launcher reports: "
        "os._exit, a crash of native code, or a signal (kill, out of memory)",
        since=min(map(ended_at, exited)),
        certainty=Certainty.LIKELY,
    )


def _claim_timeout(
    lost: Sequence[Member], error_evidence: Evidence, absent: tuple[Member, ...], call: str
) -> Claim:
    """Report members that had not arrived when the others' timeout expired."""
    location = next((f"{m.stack.user}" for m in absent if m.stack is not None and m.stack.user), "")
    absent_names = name_members(absent) + (f", which was at {location}" if location else "")
    return Claim(
        summary=f"{name_members(lost)} timed out in {call}, waiting for {absent_names}",
        who=tuple(m.who for m in absent),
        evidence=(
            error_evidence,
            Evidence(", ".join(f"rank {m.who.rank} at step {m.step}" for m in absent), "black box"),
        ),
        fix=f"see what delayed {name_members(absent)}"
        + (f" at {location}" if location else "")
        + f"; if it was there on purpose, give {_call_with_timeout(error_evidence, call)} a longer timeout=",
        since=min(map(failed_at, lost)),
        certainty=Certainty.LIKELY,
    )


def _call_with_timeout(error_evidence: Evidence, call: str) -> str:
    """Return the call whose timeout expired: `monitored_barrier` has one of its own, and so may a group."""
    if "monitoredBarrier" in error_evidence.observed:
        return "monitored_barrier"
    return "init_process_group" if call.endswith("the default group") else "new_group"


_OTHER = (
    "InternalError",
    "Collective instance 9 expected type 0 and data_type 9 but got type 0 and data_type 1",
)
_TIMEOUT = (
    "RuntimeError",
    "[unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete",
)
_FIVE = {"groups": member_with_calls(0, *(sample_signature(),) * 5).groups}


def _timed_out(rank: int) -> Member:
    return ended_member(rank, raised=_TIMEOUT, member=_FIVE)


def _waited_for(rank: int) -> Member:
    """Return a member that allaboard ended, since the others had failed."""
    groups = member_with_calls(0, *(sample_signature(),) * 4).groups
    return ended_member(
        rank,
        ended_at=97.0,
        signal=15,
        ours=True,
        member={"groups": groups, "stack": sample_stack(USER)},
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "one worker lost its peer, and allaboard ended the job for that": (
            sample_job(
                ended_member(0, ended_at=94.0, raised=PEER_LOST),
                ended_member(1, signal=15, ours=True),
                ending=True,
                ending_since=94.9,
            ),
            "1 member lost the connection to a peer; no earlier failure is known",
        ),
        "a collective timed out, and one rank had not arrived in it": (
            sample_job(_timed_out(0), _waited_for(1), _timed_out(2)),
            "worker 0, worker 2 timed out in call 5 of the default group, waiting for worker 1, which was "
            "at train.py:41 in train",
        ),
        "a collective timed out although all ranks had arrived in it": (
            sample_job(
                _timed_out(0), ended_member(1, raised=PEER_LOST, member=_FIVE), _timed_out(2)
            ),
            "3 members lost the connection to a peer; no earlier failure is known",
        ),
        "one worker exited, and only its launcher knows the exit code": (
            sample_job(ended_member(0, raised=PEER_LOST), ended_member(1, ended_at=95.1)),
            "worker 0 lost the connection to a peer: worker 1 had exited (exit code unknown)",
        ),
        "all workers lost the connection to a peer": (
            sample_job(ended_member(0, raised=PEER_LOST), ended_member(1, raised=PEER_LOST)),
            "2 members lost the connection to a peer; no earlier failure is known",
        ),
    },
    silent_on={
        "the framework found that the collectives differ, which EXIT009 reports": sample_job(
            ended_member(0, raised=_OTHER), ended_member(1, raised=PEER_LOST)
        ),
        "a worker's port was taken, which NET005 reports": sample_job(
            ended_member(0, raised=("DistNetworkError", EADDRINUSE)),
            ended_member(1, raised=PEER_LOST),
        ),
        "another worker was killed before, which EXIT001 reports": sample_job(
            ended_member(0, raised=PEER_LOST), ended_member(1, ended_at=94.0, signal=9)
        ),
        "allaboard ended the job, one rank half a second before the other": sample_job(
            ended_member(0, signal=9, ours=True),
            ended_member(1, ended_at=95.4, raised=PEER_LOST),
            ending=True,
            ending_since=94.9,
        ),
        "a worker lost its peer one second ago, and the cause may still appear": sample_job(
            ended_member(0, ended_at=99.0, raised=PEER_LOST), waiting_member(1)
        ),
        "another worker is shutting down, and its exit code is not known yet": sample_job(
            ended_member(0, raised=PEER_LOST), sample_member(1, phase=Phase.LEAVING)
        ),
        "another host was interrupted just before a worker lost its peer": sample_job(
            ended_member(0, raised=PEER_LOST),
            joined=True,
            interruptions=(Interruption(host="b", signal=15, interrupted_at=94.9, who="worker 1"),),
        ),
        "another worker had exited with code 0 before": sample_job(
            ended_member(0, raised=PEER_LOST), ended_member(1, ended_at=94.0, code=0)
        ),
    },
    drill=("collective-timeout",),
    relations=Relations(consequence_only=True, ends_by_abort=True),
)
