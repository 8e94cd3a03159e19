"""The loss of the agent that led the job, and the members that failed because of it."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.failures.failure_causality import failed_at, has_failed, order_failures
from allaboard.analysis.failures.lost_hosts import HOST_LOSS_WINDOW_S
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts import JobView, LeaderLoss, Member
from allaboard.facts.memo import cached_per_view

MAX_CHECK_S = 3.0
"""Most seconds until it is known whether a lost leader still answers at its own port."""


class LostLeader(NamedTuple):
    """An agent that led the job, and is gone."""

    loss: LeaderLoss
    """How it was lost, and what its address answers since."""
    victims: tuple[Member, ...]
    """Members of other hosts that failed because of it."""


def is_loss_unchecked(view: JobView) -> bool:
    """Return True while it is not known whether the leader is gone or only its connection broke."""
    loss = view.leader_loss
    return loss is not None and loss.answer is None and view.now - loss.lost_at < MAX_CHECK_S


@cached_per_view
def find_lost_leader(view: JobView) -> LostLeader | None:
    """Return the loss of the leader with its victims; None if it still answers, or was ended on purpose."""
    loss = view.leader_loss
    if loss is None or not loss.is_confirmed:
        return None
    is_end_of_job = view.ending_since is not None and loss.lost_at >= view.ending_since
    if is_end_of_job or any(i.host == loss.host for i in view.interruptions):
        return None
    if order_failures(view).root_failures:
        return LostLeader(loss, ())
    # A step done well after the loss shows that the job did not need that host any more.
    went_on = any(m.step and m.step_at > loss.lost_at + HOST_LOSS_WINDOW_S for m in view.members)
    victims = [
        m
        for m in view.members
        if has_failed(m)
        and has_lost_peer(m)
        and not m.launcher
        and m.who.host != loss.host
        and (
            abs(failed_at(m) - loss.lost_at) <= HOST_LOSS_WINDOW_S
            or (failed_at(m) > loss.lost_at and not went_on)
        )
    ]
    return LostLeader(loss, tuple(victims))
