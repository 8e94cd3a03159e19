"""Workers lost their connection to a peer, and no worker was seen to fail before.

## Why it matters
`Connection closed by peer` is what is left when the cause is not on this host: a link that broke, a peer on
another machine that died, or a timeout that ran out while somebody was stuck. If a timeout ran out and one
rank had made fewer calls of that group than all others, this is the rank that they waited for.

## What to do
Look at the other hosts' logs and at the network between them. If a hang was reported before this, that is
the cause, and this is how it ended. Of a rank that had ended just then, and of which nobody was told how,
look at the end of its log: only what started it knows its exit code. If all had joined a second time at the
port of the first time, give each init a port of its own: they find the addresses of the first time in a store
that is still open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from allaboard.analysis.failures.lost_hosts import find_lost_hosts
from allaboard.analysis.failures.mismatch_errors import find_mismatch_error
from allaboard.analysis.member_names import names
from allaboard.analysis.roll_call.reinit import (
    OWN_PORT_ADVICE,
    may_meet_earlier_store,
    reinit_evidence,
)
from allaboard.analysis.stalls.early_exit import EXIT_NOTICE_DELAY_S, find_early_exits
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, Interruption, JobView, Member, Phase, Stage
from allaboard.facts.samples import (
    EADDRINUSE,
    USER,
    called,
    ended,
    job,
    member,
    signature,
    stack,
    waiting,
)

SETTLE, ELSEWHERE = 3.0, 3.7
"""Seconds for another member's own failure to show, before the cause is called unknown; on several hosts
until it would be known that one of them has gone."""
KNOWN = 1.0
"""... and where it is known who had not come, and where that one was, for its death to show."""


def check(view: JobView) -> Iterator[Claim]:
    lost = members_that_lost_a_peer(view)
    if (
        not lost
        or order_failures(view).root_failures
        or any(find_mismatch_error(m) is not None for m in lost)
    ):
        return
    first = min(lost, key=failed_at)
    if interruption_behind(view, first) is not None:
        return  # it was told
    if view.ending_since is not None and failed_at(first) >= view.ending_since:
        return  # its peers were ended by us, one a moment before the other
    left = [m for m in view.members if m.exit is not None and m.exit.code == 0 and m.round > 0]
    stopped = [m for m in view.alive if m.stopped]
    # Its connections are closed, and its interpreter takes its time: how it ends is known then.
    leaving = [m for m in view.alive if m.phase is Phase.LEAVING and not has_failed(m)]
    gone = find_lost_hosts(view)
    behind, key, call = find_absent_from_call(view, lost)
    known = behind and all(m.stack is not None or not m.alive for m in behind)
    settle = KNOWN if known else ELSEWHERE if view.joined else SETTLE
    early = view.now - failed_at(first) < settle and not view.ended
    if left or leaving or stopped or any(g.victims for g in gone) or early:
        return
    message = first.raised.message if first.raised is not None else ""
    said = Evidence(message[:300], f"{first.who.name}, the first")
    if find_early_exits(view) is not None:
        return  # the better answer
    ended = [m for m in view.members if m.unheard and not m.launcher and m.round > 0]
    before = [m for m in ended if ended_at(m) <= failed_at(first) + EXIT_NOTICE_DELAY_S]
    if before:
        yield _before(lost, said, before)
        return
    if behind:
        yield _late(lost, said, behind, f"call {call} of {describe_group(view, key)}")
        return
    again = may_meet_earlier_store(view, lost)
    yield Claim(
        summary=f"{len(lost)} member{'s' * (len(lost) > 1)} lost a peer, and nobody was seen to fail before",
        who=tuple(m.who for m in lost),
        evidence=(
            said,
            *(
                Evidence(
                    f"not heard from for {failed_at(first) - g.last_heard_at:.0f} s by then", g.host
                )
                for g in gone
            ),
            *(reinit_evidence(view, lost) if again else ()),
        ),
        fix=OWN_PORT_ADVICE
        if again
        else "look at the other hosts' logs, and at the network between them"
        if view.joined or any(m.declared is not None and not m.declared.local for m in lost)
        else "read the ends of all workers' logs: which one left, or came after the others' timeout?",
        certainty=Certainty.UNKNOWN,
        since=failed_at(first),
    )


def _before(lost: Sequence[Member], said: Evidence, gone: list[Member]) -> Claim:
    """Somebody ended just then whose end only its parent has heard of."""
    return Claim(
        summary=f"{names(lost)} lost a peer: {names(gone)} had ended, and it was not heard how",
        who=tuple(m.who for m in gone),
        evidence=(
            said,
            Evidence(
                "no exception at its top, and its interpreter did not come to its end", "black box"
            ),
        ),
        fix=f"read the end of what {names(gone)} wrote, and what its launcher says of it: os._exit, a crash "
        "of native code, or a signal (kill, out of memory)",
        since=min(map(ended_at, gone)),
        certainty=Certainty.LIKELY,
    )


def _late(lost: Sequence[Member], said: Evidence, behind: tuple[Member, ...], call: str) -> Claim:
    """Somebody had not come when the others' timeout ran out."""
    at = next((f"{m.stack.user}" for m in behind if m.stack is not None and m.stack.user), "")
    whom = names(behind) + (f", which was at {at}" if at else "")
    return Claim(
        summary=f"the timeout of {names(lost)} ran out in {call}, which they made without {whom}",
        who=tuple(m.who for m in behind),
        evidence=(
            said,
            Evidence(", ".join(f"rank {m.who.rank} at step {m.step}" for m in behind), "black box"),
        ),
        fix=f"see what kept {names(behind)}"
        + (f" at {at}" if at else "")
        + f"; if it was there on purpose, give {_patient(said, call)} a longer timeout=",
        since=min(map(failed_at, lost)),
        certainty=Certainty.LIKELY,
    )


def _patient(said: Evidence, call: str) -> str:
    """Whose timeout it was: `monitored_barrier` has one of its own, and so may a group have."""
    if "monitoredBarrier" in said.observed:
        return "monitored_barrier"
    return "init_process_group" if call.endswith("the default group") else "new_group"


_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
_OTHER = (
    "InternalError",
    "Collective instance 9 expected type 0 and data_type 9 but got type 0 and data_type 1",
)
_TIMEOUT = (
    "RuntimeError",
    "[unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete",
)
_FIVE = {"groups": called(0, *(signature(),) * 5).groups}


def _gave_up(rank: int) -> Member:
    return ended(rank, raised=_TIMEOUT, member=_FIVE)


def _waited_for(rank: int) -> Member:
    """Ended by allaboard, since the others had fallen."""
    groups = called(0, *(signature(),) * 4).groups
    return ended(
        rank, at=97.0, signal=15, ours=True, member={"groups": groups, "stack": stack(USER)}
    )


RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "one lost a peer, for which the job is ended": (
            job(
                ended(0, at=94.0, raised=_LOST),
                ended(1, signal=15, ours=True),
                ending=True,
                ending_since=94.9,
            ),
            "1 member lost a peer, and nobody was seen to fail before",
        ),
        "a timeout ran out, and one had not come": (
            job(_gave_up(0), _waited_for(1), _gave_up(2)),
            "the timeout of worker 0, worker 2 ran out in call 5 of the default group, which they made "
            "without worker 1, which was at train.py:41 in train",
        ),
        "a timeout ran out, and all had come": (
            job(_gave_up(0), ended(1, raised=_LOST, member=_FIVE), _gave_up(2)),
            "3 members lost a peer, and nobody was seen to fail before",
        ),
        "one ended, and only its launcher knows how": (
            job(ended(0, raised=_LOST), ended(1, at=95.1)),
            "worker 0 lost a peer: worker 1 had ended, and it was not heard how",
        ),
        "all lost a peer": (
            job(ended(0, raised=_LOST), ended(1, raised=_LOST)),
            "2 members lost a peer, and nobody was seen to fail before",
        ),
    },
    silent_on={
        "they called different collectives": job(ended(0, raised=_OTHER), ended(1, raised=_LOST)),
        "the port of one was taken": job(
            ended(0, raised=("DistNetworkError", EADDRINUSE)), ended(1, raised=_LOST)
        ),
        "one was killed": job(ended(0, raised=_LOST), ended(1, at=94.0, signal=9)),
        "the job was ended for a hang, one rank a moment before the other": job(
            ended(0, signal=9, ours=True),
            ended(1, at=95.4, raised=_LOST),
            ending=True,
            ending_since=94.9,
        ),
        "too early to say": job(ended(0, at=99.0, raised=_LOST), waiting(1)),
        "one is about to leave": job(ended(0, raised=_LOST), member(1, phase=Phase.LEAVING)),
        "another host was interrupted": job(
            ended(0, raised=_LOST),
            joined=True,
            interruptions=(Interruption(host="b", signal=15, at=94.9, who="worker 1"),),
        ),
        "one left with 0": job(ended(0, raised=_LOST), ended(1, at=94.0, code=0)),
    },
    since="0.1",
    drill=("collective-timeout",),
    relations=Relations(consequence_only=True, ends_by_abort=True),
)
