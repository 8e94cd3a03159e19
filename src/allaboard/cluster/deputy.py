"""Lets the tasks of a TensorFlow cluster, or the hosts of a batch job, meet among themselves while the first
one has not started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from allaboard.cluster.deputy_addresses import DeputyPlaces
from allaboard.cluster.deputy_choice import DeputyStep, TaskAnswer, choose_deputy
from allaboard.cluster.membership_role import MembershipRole
from allaboard.cluster.rendezvous_ports import FOLLOWS_FIRST, RendezvousPorts
from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import ConnectResult, connect_and_greet
from allaboard.facts import Answer, Call
from allaboard.facts.leader_loss import ABSENT_ANSWERS
from allaboard.protocol.events import RendezvousProbed

FIRST_GRACE_S = 2.0
"""Seconds in which the first task may start a little later than the others, before they meet without it."""
POLL_INTERVAL_S = 0.3
"""Seconds between two looks at the other tasks' addresses."""
CONNECT_TIMEOUT_S, GREETING_TIMEOUT_S = 1.0, 1.0


class DeputySearch:
    """The search of one task or host among all ``places``.

    ``lead`` makes this host the leader at its own address there; ``wait_again`` undoes that.
    """

    def __init__(
        self,
        role: MembershipRole,
        ports: RendezvousPorts,
        places: DeputyPlaces,
        lead: Callable[[], Awaitable[None]],
        wait_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._role, self._ports = role, ports
        self._own, self._addresses, self._may_lead = places
        self._lead, self._wait_again = lead, wait_again
        self._started_at = time.monotonic()
        self._call: Call | None = None
        self._was_linked = False
        self._first_is_elsewhere = False
        """The first task's address is that of another one, which follows the first task itself."""
        self.address = ""
        """Address of the deputy that this host follows; "" for none."""

    async def run(self) -> None:
        """Search until the gate opens."""
        while not self._ports.is_released:
            leader_address = self._leader_address()
            if self._was_linked and not leader_address:
                self.address = (
                    ""  # the deputy that was followed has gone: the first task may have come
                )
            self._was_linked = bool(leader_address)
            follows_first = leader_address == self._addresses[0]
            self._ports.mark_follows_first(follows_first)
            if not follows_first and time.monotonic() - self._started_at >= FIRST_GRACE_S:
                await self._take_step(await self._choose())
            await asyncio.sleep(POLL_INTERVAL_S)

    def _leader_address(self) -> str:
        """Return the address at which this host is admitted; "" while it is not."""
        follower = self._role.follower
        return follower.leader_address if follower is not None and follower.is_linked else ""

    async def _choose(self) -> DeputyStep:
        identity = self._role.identity()
        leader_address = self._leader_address()
        other_numbers = [
            i for i in range(len(self._addresses)) if i != self._own or not self._may_lead
        ]
        asked_numbers = [i for i in other_numbers if self._addresses[i] != leader_address]
        results = await asyncio.gather(
            *(ask_task(self._addresses[i], identity) for i in asked_numbers)
        )
        answer_of = dict(zip(asked_numbers, results, strict=True))
        answers = [TaskAnswer.WAITS] * len(self._addresses)
        for number in other_numbers:
            answers[number] = answer_of[number][0] if number in answer_of else TaskAnswer.LEADS
        # What listens there may go, and the address is still not the first task's.
        self._first_is_elsewhere |= answers[0] is TaskAnswer.FOLLOWS_FIRST
        if self._first_is_elsewhere:
            answers[0] = TaskAnswer.FOLLOWS_FIRST
        step = choose_deputy(self._own, answers, self._may_lead)
        if step.leads:
            self._report_first(answer_of[0][1])
        return step

    async def _take_step(self, step: DeputyStep) -> None:
        role = self._role
        # The gate may have opened, or the first task been found, while the others were asked.
        has_found_first = self._leader_address() == self._addresses[0]
        if self._ports.is_released or step.waits or has_found_first:
            return
        if step.leads:
            if role.leader is None:
                await self._lead()
            return
        target = self._addresses[step.follows] if step.follows else ""
        has_moved, self.address = target != self.address, target
        if role.leader is not None:
            role.resign_lead()
            await self._wait_again()
        elif has_moved and role.follower is not None:
            role.follower.hang_up()

    def _report_first(self, result: ConnectResult) -> None:
        """Report how the first task's address answers, as a follower's attempts to reach it would."""
        previous = self._call
        is_repeat = previous is not None and previous.answer is result.answer
        self._call = Call(
            address=self._addresses[0],
            answer=result.answer,
            since=previous.since if is_repeat and previous is not None else time.monotonic(),
            tries=previous.tries + 1 if is_repeat and previous is not None else 1,
            met=result.numeric_address,
            said=result.detail,
        )
        self._role.add_events(RendezvousProbed(call=self._call))


async def ask_task(address: str, identity: Identity) -> tuple[TaskAnswer, ConnectResult]:
    """Return what is met at a task's address."""
    result = await connect_and_greet(address, CONNECT_TIMEOUT_S, GREETING_TIMEOUT_S)
    if result.answer in ABSENT_ANSWERS:
        return TaskAnswer.ABSENT, result
    if result.answer is not Answer.ABOARD or result.writer is None:
        return TaskAnswer.OTHER, result
    try:
        await shake_hands(result, identity, only_asks=True)
    except HandshakeRefusedError as error:
        # Where the job has a secret, somebody without it must not say who leads.
        if error.kind != "elsewhere" or (identity.secret and not error.is_proven):
            return TaskAnswer.OTHER, result
        follows_first = str(error).endswith(FOLLOWS_FIRST)
        return (TaskAnswer.FOLLOWS_FIRST if follows_first else TaskAnswer.WAITS), result
    except OSError:
        return TaskAnswer.WAITS, result
    finally:
        result.writer.close()
    return TaskAnswer.LEADS, result
