"""Among members that stand still: who waits for the others, and who is somewhere else."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.group_deadlock import entered, made_in
from allaboard.analysis.collectives.live_flight_record import in_operation
from allaboard.analysis.member_names import agrees, ranked
from allaboard.analysis.parameter_servers.parameter_servers import lost, serves, wait_for_peers
from allaboard.analysis.stacks.stack_classifier import Spot, spot, waits_for_peers
from allaboard.analysis.stalls.gil_contention import blocking_gil_grip
from allaboard.analysis.stalls.input_generator import (
    generator_may_deliver,
    member_at_stuck_generator,
)
from allaboard.analysis.stalls.jax_value_read import reads_jax_value
from allaboard.analysis.stalls.stalled_members import stalled_members
from allaboard.facts import Evidence, JobView, Member, Phase, Stack
from allaboard.facts.memo import cached_per_view

COMPUTING_OPS = ("tf.function", "DDP backward", "jit ")
"""Operations that compute too, ..."""
RESULT_READS = ("jax.Array value", "block_until_ready")
"""... and those in which a process waits for what it computes itself, alone or with others."""
JITTED_NOTE = "jitted at"
"""The note of where a program calls its jitted step, which waits in native code without a frame, ..."""
JITTED_BY_NOTE = "jitted by"
"""... and that of the line of a library that does it for the program (`jax.pmap`, `nnx.jit`)."""
IDLE_CORES = 0.2
"""Cores below which a process counts as not computing."""
ASLEEP_S = 3.0
"""Seconds in one wait of the kernel, from which a process counts as sleeping."""
MIN_STILL_SAMPLES, MIN_STILL_SPAN_S = 4, 1.2
"""Looks at a stack, and the seconds over them, before it may be called still."""


class Stall(msgspec.Struct, frozen=True):
    """``waiting``: in a collective or a step, without computing; ``elsewhere``: alive and not there;
    ``gripped``: wherever they are, one of their threads lets no other run."""

    waiting: tuple[Member, ...]
    absent: tuple[Member, ...]
    gil_blocked: tuple[Member, ...] = ()


@cached_per_view
def find_stall(view: JobView) -> Stall | None:
    """None while nobody stands still, or has joined, or has been looked at yet; where a server is lost,
    which explains every wait; and while the job is being ended, whatever each still does then.
    Asynchronous workers wait for no peer, and none of them is ``waiting``."""
    if view.ending:
        return None
    stalled = stalled_members(view)
    if not any(m.stack is not None for m in stalled) or lost(view):
        return None
    # Who only serves is awaited by nobody's collective, and has rules of its own.
    joined = tuple(m for m in stalled if not serves(m))
    gil_blocked = tuple(m for m in joined if blocking_gil_grip(m) is not None)
    gil_blocked_keys = {m.called for m in gil_blocked}
    waiting = tuple(
        m for m in joined if m.called not in gil_blocked_keys and member_waits_for_peers(m)
    )
    accounted_for = {m.called for m in (*waiting, *gil_blocked)}
    absent = tuple(
        member_at_stuck_generator(view, m) or m for m in joined if m.called not in accounted_for
    )
    if not absent and not gil_blocked:
        waiting, absent = _split_by_stuck_generator(view, waiting)
        is_whole_job = not absent and len(view.alive) == len(view.members)
        if is_whole_job and any(generator_may_deliver(view, m) for m in waiting):
            return None  # a step that takes its batch from a slow generator is a step yet
    return Stall(
        waiting if wait_for_peers(view) else (),
        _members_that_owe_a_call(waiting, absent),
        gil_blocked,
    )


def _members_that_owe_a_call(
    waiting: tuple[Member, ...], absent: tuple[Member, ...]
) -> tuple[Member, ...]:
    """Those of the others without whom a call cannot end in which somebody waits: of a group that has them,
    and that they have not made. All of them where that is not known of each call, or is so of none."""
    calls = [entered(m) for m in waiting]
    known_calls = [s for s in calls if s is not None and s.ranks]
    if len(known_calls) < len(calls):
        return absent
    ranks_of_call = {(s.key, s.number): set(s.ranks) for s in known_calls}
    owing = tuple(
        m
        for m in absent
        if any(
            m.who.rank in ranks and made_in(m, key) < number
            for (key, number), ranks in ranks_of_call.items()
        )
    )
    return owing or absent


def _split_by_stuck_generator(
    view: JobView, waiting: tuple[Member, ...]
) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    """Those of the waiting that wait for each other, and those whose step takes its batch from a generator
    that stands. Only where nobody else explains the stall, and not where most are so: such a one may wait
    for its peers as well, with a generator that has nothing to do yet."""
    at_generator_of = {
        m.called: stuck
        for m in waiting
        if is_settled_stack(m.stack) and (stuck := member_at_stuck_generator(view, m))
    }
    if len(at_generator_of) * 2 > len(waiting):
        return waiting, ()
    return tuple(m for m in waiting if m.called not in at_generator_of), tuple(
        at_generator_of.values()
    )


def member_waits_for_peers(member: Member) -> bool:
    """Whether this member waits for its peers: its black box or its stack is in a collective, and
    where that may as well be its own computing (a training step), it uses no CPU."""
    if member.stopped:
        return False
    if member.op is not None and member.op.name in RESULT_READS:
        return member.cpu < IDLE_CORES
    if member.op is not None and not member.op.name.startswith(COMPUTING_OPS):
        return True
    if member.op is not None and member.op.beside:
        return member.cpu < IDLE_CORES  # the main thread's stack says nothing of another's call
    if describe_hidden_wait(member):
        return member.cpu < IDLE_CORES
    if member.op is None and not waits_for_peers(member.stack):
        return False
    return member.cpu < IDLE_CORES and (member.stack is None or waits_for_peers(member.stack))


def _is_in_jitted_step(member: Member) -> bool:
    leaf = member.stack.frames[0] if member.stack is not None and member.stack.frames else None
    jitted_at = member.notes.get(JITTED_BY_NOTE) or member.notes.get(JITTED_NOTE)
    return (
        leaf is not None
        and jitted_at is not None
        and f"{leaf.file}:{leaf.line}".endswith(jitted_at)
    )


def describe_hidden_wait(member: Member) -> str:
    """In what it waits where neither a black box nor a frame shows it: "a jitted step"; else ""."""
    if member.op is not None:
        return ""
    if in_operation(member):
        return "an operation of a compiled graph"
    if _is_in_jitted_step(member):
        return "a jitted step"
    return "the reading of a value" if reads_jax_value(member) else ""


def is_still(member: Member) -> bool:
    """Whether repeated looks found it at one place, not waiting for I/O (state D), nor doing any: neither it
    nor its children read, write, or exchange anything with somebody."""
    stack = member.stack
    if member.os_state == "D" or max(member.io, member.traffic) >= MOVING_BYTES_PER_S:
        return False
    return is_settled_stack(stack)


MIN_STUCK_S = 4.0
"""Seconds that others must have waited for one that `stands` before that is told: it may be about to go
on."""


def is_stuck_idle(view: JobView, member: Member) -> bool:
    """Whether it is at one place and computes nothing: nothing that it does will bring it further. Where no
    stack may be taken, the kernel tells it of one that has yet to come to init: it sleeps, and has not woken
    up."""
    if not member.alive or member.cpu >= IDLE_CORES:
        return False
    slept = view.now - member.os_state_since if member.os_state == "S" else 0.0
    return is_still(member) or (member.phase is Phase.IMPORTED and slept >= ASLEEP_S)


def is_settled_stack(stack: Stack | None) -> bool:
    """Whether a stack was looked at often and for long enough, and was the same at all looks."""
    if stack is None or stack.moving:
        return False
    return stack.samples >= MIN_STILL_SAMPLES and stack.span >= MIN_STILL_SPAN_S


TRANSFER_BYTES_PER_S = 1e5
"""Bytes a second through sockets from which a member counts as transferring: heartbeats are far less."""


def is_transferring(view: JobView) -> bool:
    """Whether all that live are in a collective, and bytes still flow: a long transfer is no stall."""
    joined = [m for m in view.alive if not m.launcher and not serves(m)]
    return (
        bool(joined)
        and all(member_waits_for_peers(m) for m in joined)
        and any(m.traffic >= TRANSFER_BYTES_PER_S for m in joined)
    )


MOVING_BYTES_PER_S = 4096.0
"""Bytes per second, of reads and writes or through sockets, above which a process counts as moving."""


def waiting_evidence(current_stall: Stall) -> Evidence:
    """Who waits, and in what: the sentence that every hang finding carries."""
    example = current_stall.waiting[0]
    user_frame = example.stack.user if example.stack is not None else None
    activity = (
        example.op.name if example.op is not None else str(spot(example.stack)).removeprefix("in ")
    )
    activity = describe_hidden_wait(example) or activity
    if spot(example.stack) is Spot.STEP and example.op is None:
        activity = "a training step (gradients)"
    if example.op is not None and example.op.beside:
        activity, user_frame = f"{activity} in another thread than the main one", None
    verb = agrees("wait", current_stall.waiting)
    return Evidence(
        f"{ranked(current_stall.waiting)} {verb} in {activity}"
        + (f" at {user_frame}" if user_frame else ""),
        "stacks",
    )
