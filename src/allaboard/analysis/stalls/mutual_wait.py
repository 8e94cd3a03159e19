"""All of a group wait for each other, and no better answer is known: what is seen of why.

A member that has ended, a call that differs, or a link that fell silent is a better answer, and has a rule
of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.collectives.collective_mismatch import group_name
from allaboard.analysis.collectives.collective_order import differences
from allaboard.analysis.collectives.group_deadlock import crossed, entered
from allaboard.analysis.collectives.live_flight_record import apart
from allaboard.analysis.collectives.point_to_point import knot
from allaboard.analysis.network.unacked_links import silent_links
from allaboard.analysis.parameter_servers.parameter_servers import has_servers
from allaboard.analysis.stacks.stack_classifier import spot
from allaboard.analysis.stalls.dead_threads import ended_thread, owes_message
from allaboard.analysis.stalls.stall import (
    IDLE,
    TRAFFIC,
    Stall,
    settled,
    stall,
    transferring,
    unseen,
)
from allaboard.analysis.stalls.stalled_members import stood_since
from allaboard.facts import JobView, Member
from allaboard.facts.memo import cached_per_view

MANY = 4
"""Members that are named."""
BETWEEN_HOSTS = 10.0
"""Seconds that members of several hosts have stood before nothing better is known."""


class Everybody(NamedTuple):
    """Who waits for each other, and of what may explain it the first that is seen: members of which two
    threads are in one group (``shared``), whose thread has ended (``fallen``), who wait for each other's
    messages, as all others do in the end (``tied``), or who wait in groups that each other has not entered
    (``circle``). At most one of these is not empty."""

    stall: Stall
    shared: tuple[Member, ...] = ()
    fallen: tuple[Member, ...] = ()
    tied: tuple[Member, ...] = ()
    circle: tuple[Member, ...] = ()

    @property
    def waiting(self) -> tuple[Member, ...]:
        return self.stall.waiting


@cached_per_view
def everybody(view: JobView) -> Everybody | None:
    """None where somebody moves, or there is a better answer."""
    found = stall(view)
    if found is None or len(found.waiting) < 2 or found.elsewhere or found.gripped:
        return None
    # A group may be in a long transfer while the rest of the job goes on.
    moving = any(m.traffic >= TRAFFIC for m in found.waiting)
    if moving or transferring(view) or silent_links(view) or any(map(_pickles, found.waiting)):
        return None
    # A job with parameter servers has no collective, and its own rules.
    if has_servers(view) or any(not m.alive and m.round > 0 for m in view.members):
        return None
    if differences(view) or apart(view) or not all(settled(m.stack) for m in found.waiting):
        return None
    circle = crossed(found.waiting)
    # A link that fell silent shows after some retransmissions, and is the better answer.
    if not circle and len(hosts(found)) > 1 and view.now - stood_since(view) < BETWEEN_HOSTS:
        return None
    if shared := tuple(m for m in found.waiting if m.op is not None and m.op.also):
        return Everybody(found, shared=shared)
    if fallen := _fallen(found):
        return Everybody(found, fallen=fallen)
    if tied := knot(found.waiting):
        return Everybody(found, tied=tied)
    return Everybody(found, circle=circle)


def _pickles(member: Member) -> bool:
    """Whether it may write or read an object, before or after that is exchanged, within the same call."""
    return member.op is not None and "_object" in member.op.name and member.cpu >= IDLE


def _fallen(found: Stall) -> tuple[Member, ...]:
    """Those of whom a thread has ended by an exception, while another one waits in a thread beside its main
    one, or for a message of the kind that this thread sent or received last; () where nobody waits so."""
    besides = [m for m in found.waiting if m.op is not None and m.op.beside]
    fallen = tuple(m for m in found.waiting if besides and m not in besides and ended_thread(m))
    return fallen or tuple(m for m in found.waiting if owes_message(m, found.waiting))


def hosts(found: Stall) -> set[str]:
    """On which those are who wait."""
    return {m.who.host for m in found.waiting}


def who_wait(view: JobView, waiting: tuple[Member, ...]) -> str:
    """Those who wait, as a sentence begins; by their ranks where the rest of the job moves."""
    ranks = [str(m.who.rank) for m in waiting]
    if len(ranks) == sum(1 for m in view.alive if not m.launcher):
        return f"all {len(ranks)} members"
    more = f" and {len(ranks) - MANY} more" if len(ranks) > MANY else ""
    return f"ranks {', '.join(ranks[:MANY])}{more}"


def stands(member: Member, call: str = "") -> str:
    """In which call (``call`` in place of its name), and at which line of the user's."""
    place = member.stack.user if member.stack is not None else None
    what = (
        (call or member.op.name)
        if member.op is not None
        else unseen(member) or str(spot(member.stack))
    )
    if member.op is not None and member.op.beside:
        what += " in another thread, the main one"
    return what + (f" at {place}" if place is not None else "")


def entered_call(view: JobView, member: Member) -> str:
    """``call 21 of group 1``: what a member is inside of, where its group is known."""
    state = entered(member)
    return f"call {state.number} of {group_name(view, state.key)}" if state is not None else ""
