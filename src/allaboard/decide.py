"""From what is known and the user's policy to what is done, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.evidence.failures import failures
from allaboard.evidence.naming import names
from allaboard.evidence.pauses import RESTS, at_work
from allaboard.evidence.servers import beside, goes_on_without, left_over, trained
from allaboard.evidence.stall import IO_MOVING, stall, transferring
from allaboard.evidence.standing import standing, stood_since
from allaboard.facts import Certainty, Claim, JobView, Member, Outcome, Phase, Severity, Stage
from allaboard.recover.tasks import comes_back_alone
from allaboard.rollcall.roll import Roll, in_rpc

SETTLE = 5.0
"""Seconds that the members left after one failed get to end by themselves and say what they met."""


BEFORE = (Stage.STARTUP, Stage.NETWORK, Stage.CLUSTER)
"""Stages whose errors keep a job from starting."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What the user allowed. ``observe`` ends nothing; ``stop_on_hang`` ends a job on a certain
    finding, or after ``hang_after`` s without progress; ``ends_survivors`` is False where another
    launcher decides what becomes of the others; ``ends_servers``: those that serve are ended when the work
    is done; ``only_reports``: a roll call that fails is told, and the framework's own timeout decides;
    ``patience``: seconds that they who stand at the door wait for somebody who may still come;
    ``init_within``: seconds that the framework's own init may take after that; ``bound``: seconds from
    the roll call in which a job that a fault of the network holds up must have begun; ``stop_on_error``: a
    rehearsal, which ends once it is known what is wrong. ``restarts``: what failed may be started again, so
    that a
    failure that is certain ends the round at once, and a worker that is stopped for ``stopped_after`` s
    while others wait does too."""

    observe: bool = False
    stop_on_hang: bool = False
    hang_after: float = 600.0
    ends_survivors: bool = True
    ends_servers: bool = True
    only_reports: bool = False
    stop_on_error: bool = False
    patience: float = 0.0
    init_within: float | None = None
    bound: float | None = None
    restarts: bool = False
    stopped_after: float = 30.0


class Verdict(msgspec.Struct, frozen=True):
    """End the job so, for this reason."""

    outcome: Outcome
    reason: str


def verdict(
    view: JobView,
    rolls: Iterable[Roll],
    claims: Iterable[tuple[Stage, Claim]],
    policy: Policy,
) -> Verdict | None:
    """Whether the job is to be ended now, and why; None to let it be."""
    if policy.observe or not view.alive:
        return None
    claims, rolls = list(claims), list(rolls)
    return (
        _interrupted(view, rolls, policy)
        or _roll_call(view, rolls, claims, policy)
        or _inside(view, policy)
        or _held_up(view, claims, policy)
        or _known(view, claims, policy)
        or _failure(view, policy)
        or _done(view, policy)
        or _stopped(view, policy)
        or _hang(view, claims, policy)
    )  # the earliest stage decides


def _interrupted(view: JobView, rolls: Iterable[Roll], policy: Policy) -> Verdict | None:
    """Another host was interrupted, and what ran there has ended: nobody starts it again from here."""
    if not view.interruptions:
        return None
    said = f"{view.interruptions[0]}; ending the others"
    if view.rolled_at is None:
        waits = any(roll.interrupted for roll in rolls) and not policy.only_reports
        return Verdict(Outcome.INTERRUPTED, said) if waits else None
    if not (policy.restarts and policy.ends_survivors):
        return None
    gone = [m for m in view.members if m.interrupted is not None and not m.alive]
    if all(goes_on_without(view, m) or _returns(view, m, policy) for m in gone):
        return None  # others may go on; who stands still for it is ended by its own agent's bond
    return Verdict(Outcome.INTERRUPTED, said)


def _roll_call(
    view: JobView, rolls: Iterable[Roll], claims: list[tuple[Stage, Claim]], policy: Policy
) -> Verdict | None:
    """Somebody stands at the door, and it is proven that the others cannot come."""
    arrived = [roll.last_arrival for roll in rolls if roll.held]
    if policy.only_reports or not arrived:
        return None
    patient = view.now - max(view.launched_at, *arrived) < policy.patience
    wrong = [
        c for stage, c in claims if stage in BEFORE and proven(c) and not (c.awaits and patient)
    ]
    if not wrong:
        return None
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {wrong[0].summary}")


def _inside(view: JobView, policy: Policy) -> Verdict | None:
    """The framework's own init does not come back, and its caller gave it a bound."""
    if policy.init_within is None:
        return None
    for member in view.alive:
        within = view.now - member.phase_since < policy.init_within
        if member.phase is Phase.JOINING and not within:
            call = member.declared.call if member.declared is not None else "init"
            said = f"{call} did not come back within {policy.init_within:.0f} s of the roll call"
            return Verdict(Outcome.ROLL_CALL_FAILED, said)
    return None


def _held_up(view: JobView, claims: list[tuple[Stage, Claim]], policy: Policy) -> Verdict | None:
    """The roll call passed, over a link that may not be needed; now the framework stands still, nobody
    has done a step, and the user set a bound. Which links it needs is seen by what it does."""
    if policy.bound is None or view.rolled_at is None:
        return None
    if view.now - view.rolled_at < policy.bound or any(m.step for m in view.alive):
        return None
    wrong = [c for stage, c in claims if stage in BEFORE and c.severity is Severity.ERROR]
    if not wrong or not any(_waits(view, m) for m in view.alive):
        return None
    return Verdict(Outcome.ROLL_CALL_FAILED, f"the roll call failed: {wrong[0].summary}")


STILL, BUSY = 3.0, 0.5
"""Seconds inside one call of the framework, and the cores in use, that tell waiting from work."""


def _waits(view: JobView, member: Member) -> bool:
    """Whether it is inside the framework's init or a collective, gets no answer on a connection, or has
    failed and does not end; and is idle."""
    inside = member.op.since if member.op is not None else view.now
    failed = member.raised.at if member.raised is not None else view.now
    joins = member.phase_since if member.phase is Phase.JOINING else view.now
    still = view.now - min(inside, failed, joins) >= STILL
    return (still or bool(member.unanswered)) and member.cpu < BUSY


def _known(view: JobView, claims: list[tuple[Stage, Claim]], policy: Policy) -> Verdict | None:
    """A rehearsal has begun and does not come to its end; others had their time to find the same."""
    if not policy.stop_on_error or view.rolled_at is None:
        return None
    for stage, claim in claims:
        lasting = claim.since is not None and view.now - claim.since >= KNOWN
        if stage in BEFORE and claim.severity is Severity.ERROR and lasting:
            return Verdict(Outcome.HANG, f"ended, the cause is known: {claim.summary}")
    return None


KNOWN = 8.0
"""Seconds that a fault lasted before a rehearsal is ended for it."""


def _failure(view: JobView, policy: Policy) -> Verdict | None:
    """A member failed after the start; the others had their time to end by themselves. Where it is
    to be started again, every second of theirs is lost."""
    if not policy.ends_survivors or (view.rolled_at is None and not policy.restarts):
        return None
    found = failures(view)
    here = [
        m
        for m in found.began + found.fell
        if not (_returns(view, m, policy) or goes_on_without(view, m) or _handled(view, m))
    ]
    ended = [m for m in here if m.exit is not None]
    if ended and view.now - min(_ended_at(m) for m in ended) >= SETTLE:
        first = min(ended, key=_ended_at)
    elif here and here[0] in found.began and _told(view, here[0], policy):
        first = here[0]
    else:
        return None
    return Verdict(Outcome.FAILED, f"{first.who.name} failed; ending the others")


def _returns(view: JobView, member: Member, policy: Policy) -> bool:
    """Whether it is started again alone, so that its end is not the job's."""
    return policy.restarts and comes_back_alone(view, member)


def _handled(view: JobView, member: Member) -> bool:
    """Whether the process that started it lives, and is to decide: a sweep goes on with its next training."""
    return any(m.launcher and m.worker == member.worker for m in view.alive)


def _told(view: JobView, member: Member, policy: Policy) -> bool:
    """Whether it has failed for certain: it has ended, or raised so long ago that its shutdown hangs. Where
    it is not to be started again, what it may still do in its end (the upload of a log) has its time."""
    if member.exit is not None or member.raised is None:
        return member.exit is not None and policy.restarts
    if policy.restarts:
        return view.now - member.raised.at >= SETTLE
    idle = member.cpu < RESTS and max(member.io, member.traffic) < IO_MOVING
    return idle and view.now - member.raised.at >= SHUT_IN


SHUT_IN = 20.0
"""Seconds from an exception at its top until a member that does nothing counts as held in its own end, as
JAX's is by a barrier of all (300 s)."""


def _stopped(view: JobView, policy: Policy) -> Verdict | None:
    """Somebody is stopped by a signal, not dead, for longer than the user wants to wait for it. Who is
    held by a debugger is left alone."""
    if not policy.restarts or not policy.ends_survivors or not (view.stalled or standing(view)):
        return None
    for member in view.alive:
        since = view.now - member.os_state_since
        alone = _returns(view, member, policy)
        stopped = member.os_state == "T" and not beside(member)
        if stopped and since >= policy.stopped_after and not alone:
            who = member.who.name
            return Verdict(
                Outcome.HANG,
                f"{who} has been stopped for {since:.0f} s (--stopped-after "
                f"{policy.stopped_after:g})",
            )
    return None


def _done(view: JobView, policy: Policy) -> Verdict | None:
    """Parameter servers, and TF2's workers, serve for ever: the end is ours to see. An evaluator
    gets its time for the last checkpoint."""
    rest = left_over(view)
    if not rest or not policy.ends_servers:
        return None
    done = trained(view)
    quiet = view.now - max(_ended_at(m) for m in done)
    if quiet < (LAST_EVALUATION if any(m.who.job == "evaluator" for m in rest) else 0.0):
        return None
    left = names(rest)
    return Verdict(
        Outcome.COMPLETED, f"{names(done)} ended with exit code 0; ending what serves: {left}"
    )


LAST_EVALUATION = 60.0
"""Seconds that an evaluator gets after the training, to end by itself."""


def _ended_at(member: Member) -> float:
    return member.exit.at if member.exit is not None else float("inf")


def _hang(view: JobView, claims: list[tuple[Stage, Claim]], policy: Policy) -> Verdict | None:
    if not policy.stop_on_hang:
        return None
    wrong = [c for stage, c in claims if stage is Stage.RUNTIME and proven(c)]
    corrupt = [c for c in wrong if c.corrupts]
    if corrupt:
        return Verdict(Outcome.HANG, f"ended, it computes wrong values: {corrupt[0].summary}")
    if not (view.stalled or standing(view) or _rehearsal_waits(view, policy)):
        return None
    if any(m.os_state == "t" for m in view.alive):
        return None  # somebody looks at it with a debugger
    if wrong:
        return Verdict(Outcome.HANG, f"ended for a hang: {wrong[0].summary}")
    if transferring(view) or _gathers(view) or at_work(view) or in_rpc(view):
        return None
    silent = view.now - stood_since(view)
    if silent >= policy.hang_after and policy.stop_on_error:
        return Verdict(Outcome.HANG, f"the rehearsal made no progress for {silent:.0f} s (--bound)")
    if silent >= max(policy.hang_after, view.stall_after + LOOKED):
        return Verdict(
            Outcome.HANG,
            f"ended for a hang: no progress for {silent:.0f} s (--hang-after {policy.hang_after:g})"
            + _not_there(view, claims),
        )
    return None


def _not_there(view: JobView, claims: list[tuple[Stage, Claim]]) -> str:
    """Where those are for whom the others wait, if no rule could tell: on a host that is full there are too
    few looks to say what they do."""
    told = {w for stage, claim in claims if stage is Stage.RUNTIME for w in claim.who}
    found = stall(view)
    if found is None or not found.waiting:
        return ""
    places = [
        f"{m.who.name} is at {m.stack.place}"
        for m in found.elsewhere
        if m.who not in told and m.stack is not None and m.stack.frames
    ]
    return f"; {', '.join(places[:4])}, and not in the collective" if places else ""


LOOKED = 5.0
"""Seconds after a job counts as standing still in which its stacks are taken, and it is told who waits for
whom: a job that is ended before has no finding."""


def _gathers(view: JobView) -> bool:
    """Whether somebody stands at the door who may still wait, or is on the way there, and imports a framework
    from a slow disk: a roll call has a time of its own, after which it is told who is missing."""
    arrived = [m.phase_since for m in view.alive if m.phase is Phase.ARRIVED]
    coming = [m.started_at for m in view.alive if m.phase is Phase.IMPORTING]
    since = max([view.launched_at, *arrived, *coming])
    return bool(arrived or coming) and view.now - since < view.timeout


def _rehearsal_waits(view: JobView, policy: Policy) -> bool:
    """Whether somebody waits idly inside the framework's init, where nothing tells how long a step takes."""
    return policy.stop_on_error and any(
        m.phase is Phase.JOINING and _waits(view, m) for m in view.alive
    )


def proven(claim: Claim) -> bool:
    """An error that the evidence leaves no doubt of."""
    return claim.severity is Severity.ERROR and claim.certainty is Certainty.CERTAIN
