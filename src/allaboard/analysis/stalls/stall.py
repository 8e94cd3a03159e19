"""The members that make no progress: those that wait for their peers, and those that are elsewhere."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.group_deadlock import (
    calls_made_in,
    entered_group,
)
from allaboard.analysis.collectives.live_flight_record import is_in_compiled_operation
from allaboard.analysis.collectives.queued_calls import reads_device_value
from allaboard.analysis.member_names import conjugate_verb, name_by_rank
from allaboard.analysis.parameter_servers import (
    has_lost_server,
    only_serves,
    workers_wait_for_peers,
)
from allaboard.analysis.stacks.jax_value_read import reads_jax_value
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stalls.gil_contention import blocking_gil_grip
from allaboard.analysis.stalls.input_generator import (
    generator_may_deliver,
    member_at_stuck_generator,
)
from allaboard.analysis.stalls.stalled_members import stalled_members
from allaboard.analysis.stalls.world_members import members_of_same_worlds
from allaboard.facts import Evidence, JobView, Member, Phase, Stack
from allaboard.facts.memo import cached_per_view

COMPUTING_OPS = ("tf.function", "DDP backward", "jit ")
"""Prefixes of the operations in which a process may compute as well as wait for its peers."""
RESULT_READS = ("jax.Array value", "block_until_ready")
"""Operations in which a process waits for a result that it computes itself, alone or with its peers."""
JITTED_NOTE = "jitted at"
"""Note with the line at which a program calls its jitted step, which waits in native code without a frame."""
JITTED_BY_NOTE = "jitted by"
"""Note with the line of a library that calls the jitted step for the program (`jax.pmap`, `nnx.jit`)."""
IDLE_CORES = 0.2
"""Cores below which a process counts as not computing."""
ASLEEP_S = 3.0
"""Seconds in state S from which a process counts as asleep."""
MIN_STILL_SAMPLES, MIN_STILL_SPAN_S = 4, 1.2
"""Samples of a stack, and the seconds that they must span, before it may be called still."""


class Stall(msgspec.Struct, frozen=True):
    """The members that stand still, divided by what they do."""

    waiting: tuple[Member, ...]
    """Members in a collective or a step that do not compute: they wait for their peers."""
    absent: tuple[Member, ...]
    """Live members that are somewhere else, and may be the ones waited for."""
    gil_blocked: tuple[Member, ...] = ()
    """Members, wherever they are, of which one thread keeps the GIL."""


@cached_per_view
def find_stall(view: JobView) -> Stall | None:
    """Return the current stall, or None.

    There is none while no member stands still, has joined, or has a stack sample. A lost parameter server
    explains every wait, and while the job is being ended nothing is judged: None as well. Asynchronous
    workers wait for no peer, so none of them is in ``waiting``.
    """
    if view.ending:
        return None
    stalled = stalled_members(view)
    if not any(m.stack is not None for m in stalled) or has_lost_server(view):
        return None
    # No collective waits for a task that only serves; such tasks have rules of their own.
    joined = tuple(m for m in stalled if not only_serves(m))
    gil_blocked = tuple(m for m in joined if blocking_gil_grip(m) is not None)
    gil_blocked_keys = {m.event_key for m in gil_blocked}
    waiting = tuple(
        m for m in joined if m.event_key not in gil_blocked_keys and member_waits_for_peers(m)
    )
    # Who waits for a process of another world is not the one to blame here: the other world is looked at.
    waits_abroad = {w.waiter_key for w in view.world_waits} & {m.event_key for m in joined}
    abroad = tuple(m for m in joined if m.event_key in waits_abroad)
    joined = tuple(m for m in joined if m.event_key not in waits_abroad)
    accounted_for = {m.event_key for m in (*waiting, *gil_blocked)}
    absent = tuple(
        member_at_stuck_generator(view, m) or m for m in joined if m.event_key not in accounted_for
    )
    if not waiting:
        # Nobody is in a collective: who waits for a file lock that another member holds waits for that one.
        waiting = _waiting_for_a_lock_of(view, absent) or _waiting_for_a_gpu(absent)
        absent = tuple(m for m in absent if m not in waiting)
    absent = members_of_same_worlds(view, absent, waiting)
    waiting = members_of_same_worlds(view, waiting, absent)
    if abroad and not absent:
        # Their peers wait for them, and with them for the other world.
        explained = {m.event_key for m in members_of_same_worlds(view, waiting, abroad)}
        waiting = tuple(m for m in waiting if m.event_key not in explained)
        if not waiting and not gil_blocked:
            return None
    if not absent and not gil_blocked:
        waiting, absent = _split_by_stuck_generator(view, waiting)
        # If members are missing from the view, one of those may be the cause: then this is a stall.
        is_whole_job = not absent and len(view.alive) == len(view.members)
        if is_whole_job and any(generator_may_deliver(view, m) for m in waiting):
            return None  # a step that takes its batch from a slow generator is a step yet
    return Stall(
        waiting if workers_wait_for_peers(view) else (),
        _members_that_owe_a_call(waiting, absent),
        gil_blocked,
    )


def _waiting_for_a_lock_of(view: JobView, members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return those of the members that wait for file locks which others of them hold, who wait for none."""
    holders = {w.waiter: set(w.holders) for w in view.lock_waits}
    at_lock = {m.event_key for m in members if classify_stack(m.stack) is Spot.FILE_LOCK}
    return tuple(
        m
        for m in members
        if m.event_key in at_lock
        and any(
            other.who.pid in holders.get(m.event_key, ())
            and other.who.host == m.who.host
            and other.event_key not in at_lock
            for other in members
        )
    )


def _waiting_for_a_gpu(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return those of the members that need a result of their GPU, while all others are idle elsewhere.

    NCCL's calls wait on the GPU's queue. Of members with a black box its numbers tell who waits.
    """
    reading = tuple(
        m
        for m in members
        if not m.groups
        and not m.is_stopped
        and m.framework in ("", "torch")
        and is_settled_stack(m.stack)
        and classify_stack(m.stack) is Spot.USER
        and reads_device_value(m.stack)
    )
    others = [m for m in members if m not in reading]
    return reading if others and all(m.cpu < IDLE_CORES for m in others) else ()


def _members_that_owe_a_call(
    waiting: tuple[Member, ...], absent: tuple[Member, ...]
) -> tuple[Member, ...]:
    """Return the absent members without whom a call that somebody waits in cannot complete.

    Such a member belongs to the call's group and has not made the call. Return all absent members if this is
    not known of each call, or if none of them owes one.
    """
    calls = [entered_group(m) for m in waiting]
    known_calls = [s for s in calls if s is not None and s.ranks]
    # A call without a known group may wait for any of them.
    if len(known_calls) < len(calls):
        return absent
    ranks_of_call = {(s.key, s.number): set(s.ranks) for s in known_calls}
    owing = tuple(
        m
        for m in absent
        if any(
            m.who.rank in ranks and calls_made_in(m, key) < number
            for (key, number), ranks in ranks_of_call.items()
        )
    )
    return owing or absent


def _split_by_stuck_generator(
    view: JobView, waiting: tuple[Member, ...]
) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    """Divide the waiting into those that wait for each other and those with a stuck input generator.

    Ask this only if nobody else explains the stall. If most members have a stuck generator, it explains
    nothing: they may wait for their peers as well, with a generator that has nothing to do yet.
    """
    at_generator_of = {
        m.event_key: stuck
        for m in waiting
        if is_settled_stack(m.stack) and (stuck := member_at_stuck_generator(view, m))
    }
    if len(at_generator_of) * 2 > len(waiting):
        return waiting, ()
    return tuple(m for m in waiting if m.event_key not in at_generator_of), tuple(
        at_generator_of.values()
    )


def member_waits_for_peers(member: Member) -> bool:
    """Return True if this member waits for its peers.

    Its black box or its stack shows it in a collective. Where it may as well compute there (in a training
    step), it must use no CPU.
    """
    if member.is_stopped:
        return False
    # A process that reads a result may still compute it: only an idle one waits for its peers.
    if member.op is not None and member.op.name in RESULT_READS:
        return member.cpu < IDLE_CORES
    if member.op is not None and member.op.queued:
        return True  # it polls for the GPU's result
    # A plain collective computes nothing of its own. Backends may spin while they wait, so the CPU
    # proves nothing here.
    if member.op is not None and not member.op.name.startswith(COMPUTING_OPS):
        return True
    if member.op is not None and member.op.beside:
        return member.cpu < IDLE_CORES  # the main thread's stack says nothing of another's call
    # Native code that leaves no frame: only the CPU tells a wait from a computation.
    if describe_hidden_wait(member):
        return member.cpu < IDLE_CORES
    if member.op is None and not is_peer_wait(member.stack):
        return False
    return member.cpu < IDLE_CORES and (member.stack is None or is_peer_wait(member.stack))


def _is_in_jitted_step(member: Member) -> bool:
    leaf = member.stack.frames[0] if member.stack is not None and member.stack.frames else None
    # The library's line is the innermost frame if a library calls the jitted step, else the program's.
    jitted_at = member.notes.get(JITTED_BY_NOTE) or member.notes.get(JITTED_NOTE)
    return (
        leaf is not None
        and jitted_at is not None
        and f"{leaf.file}:{leaf.line}".endswith(jitted_at)
    )


def describe_hidden_wait(member: Member) -> str:
    """Return what the member waits in if neither black box nor frames show it ("a jitted step"), else ""."""
    if member.op is not None:
        return ""
    if is_in_compiled_operation(member):
        return "an operation of a compiled graph"
    if _is_in_jitted_step(member):
        return "a jitted step"
    return "a read of a JAX value" if reads_jax_value(member) else ""


def is_still(member: Member) -> bool:
    """Return True if repeated samples found the member at one place, without any I/O.

    It is not in state D, and neither it nor its children read, write, or exchange bytes through sockets.
    """
    stack = member.stack
    if member.os_state == "D" or max(member.io, member.traffic) >= MOVING_BYTES_PER_S:
        return False
    return is_settled_stack(stack)


MIN_STUCK_S = 4.0
"""Seconds that others must have waited for an `is_stuck_idle` member before it is reported."""


def is_stuck_idle(view: JobView, member: Member) -> bool:
    """Return True if the member is at one place and computes nothing, so that it will not go on by itself.

    If no stack can be sampled, a member that has yet to reach init counts as stuck once it has slept for
    ASLEEP_S in the kernel without waking up.
    """
    if not member.alive or member.cpu >= IDLE_CORES:
        return False
    slept = view.now - member.os_state_since if member.os_state == "S" else 0.0
    return is_still(member) or (member.phase is Phase.IMPORTED and slept >= ASLEEP_S)


def is_settled_stack(stack: Stack | None) -> bool:
    """Return True if a stack was sampled often and for long enough, and never changed."""
    if stack is None or stack.moving:
        return False
    return stack.samples >= MIN_STILL_SAMPLES and stack.span >= MIN_STILL_SPAN_S


TRANSFER_BYTES_PER_S = 1e5
"""Bytes a second through sockets from which a member counts as transferring; heartbeats are far less."""


def is_transferring(view: JobView) -> bool:
    """Return True if all live members are in a collective and bytes still flow: a long transfer."""
    joined = [m for m in view.alive if not m.launcher and not only_serves(m)]
    return (
        bool(joined)
        and all(member_waits_for_peers(m) for m in joined)
        and any(m.traffic >= TRANSFER_BYTES_PER_S for m in joined)
    )


MOVING_BYTES_PER_S = 4096.0
"""Bytes a second, read and written or through sockets, from which a process counts as moving."""


def waiting_evidence(current_stall: Stall) -> Evidence:
    """Return which members wait, and in what: the sentence that every hang finding carries."""
    example = current_stall.waiting[0]
    user_frame = example.stack.user if example.stack is not None else None
    activity = (
        example.op.name
        if example.op is not None
        else str(classify_stack(example.stack)).removeprefix("in ")
    )
    activity = describe_hidden_wait(example) or activity
    if classify_stack(example.stack) is Spot.STEP and example.op is None:
        activity = "a training step (gradients)"
    if example.op is not None and example.op.beside:
        activity, user_frame = f"{activity} in a thread other than the main one", None
    verb = conjugate_verb("wait", current_stall.waiting)
    preposition = "in"
    if example.op is not None and example.op.queued:
        preposition, activity = "for", f"{activity}, which is on the queue of its GPU,"
    elif example.op is None and reads_device_value(example.stack):
        preposition, activity = "for", "a result of its GPU"
    if classify_stack(example.stack) is Spot.FILE_LOCK and example.op is None:
        preposition, activity = "for", "a file lock that is held there"
    return Evidence(
        f"{name_by_rank(current_stall.waiting)} {verb} {preposition} {activity}"
        + (f" at {user_frame}" if user_frame else ""),
        "stacks",
    )
