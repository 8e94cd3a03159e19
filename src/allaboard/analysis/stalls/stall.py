"""Among members that stand still: who waits for the others, and who is somewhere else."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.group_deadlock import entered, made_in
from allaboard.analysis.collectives.live_flight_record import in_operation
from allaboard.analysis.member_names import agrees, ranked
from allaboard.analysis.parameter_servers.parameter_servers import lost, serves, wait_for_peers
from allaboard.analysis.stacks.stack_classifier import Spot, spot, waits_for_peers
from allaboard.analysis.stalls.gil_contention import gripped
from allaboard.analysis.stalls.input_generator import at_generator, goes_on
from allaboard.analysis.stalls.jax_value_read import reads_value
from allaboard.analysis.stalls.stalled_members import standing
from allaboard.facts import Evidence, JobView, Member, Phase, Stack
from allaboard.facts.memo import cached_per_view

STEPS = ("tf.function", "DDP backward", "jit ")
"""Operations that compute too, ..."""
RESULTS = ("jax.Array value", "block_until_ready")
"""... and those in which a process waits for what it computes itself, alone or with others."""
JITTED = "jitted at"
"""The note of where a program calls its jitted step, which waits in native code without a frame, ..."""
JITTED_BY = "jitted by"
"""... and that of the line of a library that does it for the program (`jax.pmap`, `nnx.jit`)."""
IDLE = 0.2
"""Cores below which a process counts as not computing."""
ASLEEP = 3.0
"""Seconds in one wait of the kernel, from which a process counts as sleeping."""
LOOKS, SPAN = 4, 1.2
"""Looks at a stack, and the seconds over them, before it may be called still."""


class Stall(msgspec.Struct, frozen=True):
    """``waiting``: in a collective or a step, without computing; ``elsewhere``: alive and not there;
    ``gripped``: wherever they are, one of their threads lets no other run."""

    waiting: tuple[Member, ...]
    elsewhere: tuple[Member, ...]
    gripped: tuple[Member, ...] = ()


@cached_per_view
def stall(view: JobView) -> Stall | None:
    """None while nobody stands still, or has joined, or has been looked at yet; where a server is lost,
    which explains every wait; and while the job is being ended, whatever each still does then.
    Asynchronous workers wait for no peer, and none of them is ``waiting``."""
    if view.ending:
        return None
    stand = standing(view)
    if not any(m.stack is not None for m in stand) or lost(view):
        return None
    # Who only serves is awaited by nobody's collective, and has rules of its own.
    joined = tuple(m for m in stand if not serves(m))
    held = tuple(m for m in joined if gripped(m) is not None)
    grip = {m.called for m in held}
    waiting = tuple(m for m in joined if m.called not in grip and waits(m))
    there = {m.called for m in (*waiting, *held)}
    elsewhere = tuple(at_generator(view, m) or m for m in joined if m.called not in there)
    if not elsewhere and not held:
        waiting, elsewhere = _held_by_input(view, waiting)
        whole = not elsewhere and len(view.alive) == len(view.members)
        if whole and any(goes_on(view, m) for m in waiting):
            return None  # a step that takes its batch from a slow generator is a step yet
    return Stall(waiting if wait_for_peers(view) else (), _owing(waiting, elsewhere), held)


def _owing(waiting: tuple[Member, ...], elsewhere: tuple[Member, ...]) -> tuple[Member, ...]:
    """Those of the others without whom a call cannot end in which somebody waits: of a group that has them,
    and that they have not made. All of them where that is not known of each call, or is so of none."""
    calls = [entered(m) for m in waiting]
    known = [s for s in calls if s is not None and s.ranks]
    if len(known) < len(calls):
        return elsewhere
    wanted = {(s.key, s.number): set(s.ranks) for s in known}
    owing = tuple(
        m
        for m in elsewhere
        if any(
            m.who.rank in ranks and made_in(m, key) < number
            for (key, number), ranks in wanted.items()
        )
    )
    return owing or elsewhere


def _held_by_input(
    view: JobView, waiting: tuple[Member, ...]
) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    """Those of the waiting that wait for each other, and those whose step takes its batch from a generator
    that stands. Only where nobody else explains the stall, and not where most are so: such a one may wait
    for its peers as well, with a generator that has nothing to do yet."""
    stands = {m.called: at for m in waiting if settled(m.stack) and (at := at_generator(view, m))}
    if len(stands) * 2 > len(waiting):
        return waiting, ()
    return tuple(m for m in waiting if m.called not in stands), tuple(stands.values())


def waits(member: Member) -> bool:
    """Whether this member waits for its peers: its black box or its stack is in a collective, and
    where that may as well be its own computing (a training step), it uses no CPU."""
    if member.stopped:
        return False
    if member.op is not None and member.op.name in RESULTS:
        return member.cpu < IDLE
    if member.op is not None and not member.op.name.startswith(STEPS):
        return True
    if member.op is not None and member.op.beside:
        return member.cpu < IDLE  # the main thread's stack says nothing of another's call
    if unseen(member):
        return member.cpu < IDLE
    if member.op is None and not waits_for_peers(member.stack):
        return False
    return member.cpu < IDLE and (member.stack is None or waits_for_peers(member.stack))


def _in_jitted(member: Member) -> bool:
    leaf = member.stack.frames[0] if member.stack is not None and member.stack.frames else None
    place = member.notes.get(JITTED_BY) or member.notes.get(JITTED)
    return leaf is not None and place is not None and f"{leaf.file}:{leaf.line}".endswith(place)


def unseen(member: Member) -> str:
    """In what it waits where neither a black box nor a frame shows it: "a jitted step"; else ""."""
    if member.op is not None:
        return ""
    if in_operation(member):
        return "an operation of a compiled graph"
    if _in_jitted(member):
        return "a jitted step"
    return "the reading of a value" if reads_value(member) else ""


def still(member: Member) -> bool:
    """Whether repeated looks found it at one place, not waiting for I/O (state D), nor doing any: neither it
    nor its children read, write, or exchange anything with somebody."""
    seen = member.stack
    if member.os_state == "D" or max(member.io, member.traffic) >= IO_MOVING:
        return False
    return settled(seen)


STOOD = 4.0
"""Seconds that others must have waited for one that `stands` before that is told: it may be about to go
on."""


def stands(view: JobView, member: Member) -> bool:
    """Whether it is at one place and computes nothing: nothing that it does will bring it further. Where no
    stack may be taken, the kernel tells it of one that has yet to come to init: it sleeps, and has not woken
    up."""
    if not member.alive or member.cpu >= IDLE:
        return False
    slept = view.now - member.os_state_since if member.os_state == "S" else 0.0
    return still(member) or (member.phase is Phase.IMPORTED and slept >= ASLEEP)


def settled(seen: Stack | None) -> bool:
    """Whether a stack was looked at often and for long enough, and was the same at all looks."""
    if seen is None or seen.moving:
        return False
    return seen.samples >= LOOKS and seen.span >= SPAN


TRAFFIC = 1e5
"""Bytes a second through sockets from which a member counts as transferring: heartbeats are far less."""


def transferring(view: JobView) -> bool:
    """Whether all that live are in a collective, and bytes still flow: a long transfer is no stall."""
    joined = [m for m in view.alive if not m.launcher and not serves(m)]
    return (
        bool(joined) and all(waits(m) for m in joined) and any(m.traffic >= TRAFFIC for m in joined)
    )


IO_MOVING = 4096.0
"""Bytes per second, of reads and writes or through sockets, above which a process counts as moving."""


def waiting_where(found: Stall) -> Evidence:
    """Who waits, and in what: the sentence that every hang finding carries."""
    first = found.waiting[0]
    place = first.stack.user if first.stack is not None else None
    what = first.op.name if first.op is not None else str(spot(first.stack)).removeprefix("in ")
    what = unseen(first) or what
    if spot(first.stack) is Spot.STEP and first.op is None:
        what = "a training step (gradients)"
    if first.op is not None and first.op.beside:
        what, place = f"{what} in another thread than the main one", None
    verb = agrees("wait", found.waiting)
    return Evidence(
        f"{ranked(found.waiting)} {verb} in {what}" + (f" at {place}" if place else ""), "stacks"
    )
