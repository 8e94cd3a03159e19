"""The attempts of this host to reach the leader: each is an event, and another answer wakes the loop."""

from __future__ import annotations

import time
from collections.abc import Callable

from allaboard.cluster.rendezvous_call import next_call
from allaboard.facts import Answer, Call
from allaboard.protocol.events import Event, RendezvousProbed


class CallHistory:
    """What is known of the attempts so far.

    ``is_user_given``: the user named the address. ``events`` gets an event for each attempt, and ``wake`` is
    called after one that had another answer than the one before.
    """

    def __init__(self, is_user_given: bool, events: list[Event], wake: Callable[[], None]) -> None:
        self._is_user_given = is_user_given
        self._events = events
        self._wake = wake
        self.last: Call | None = None
        """The last attempt, with what earlier ones showed; None before the first."""
        self.unchanged_count = 0
        """Number of the last attempts that had one and the same answer."""

    @property
    def address(self) -> str:
        """Address of the last attempt; "" before the first."""
        return self.last.address if self.last is not None else ""

    def record(
        self,
        address: str,
        answer: Answer,
        detail: str = "",
        *,
        numeric_address: str = "",
        store_clients: int = -1,
        has_shaken_hands: bool = False,
        kind: str = "",
        is_proven: bool = True,
    ) -> None:
        """Record an attempt that has just ended so; the arguments are the fields of `Call`."""
        previous = self.last
        attempt = Call(
            address=address,
            answer=answer,
            since=time.monotonic(),
            met=numeric_address,
            said=detail,
            kind=kind,
            is_proven=is_proven,
            joined=store_clients,
            shook=has_shaken_hands,
            is_given_by_user=self._is_user_given,
        )
        self.last = next_call(previous, attempt)
        is_repeat = previous is not None and previous.answer is self.last.answer
        self.unchanged_count = self.unchanged_count + 1 if is_repeat else 1
        self._events.append(RendezvousProbed(call=self.last))
        if not is_repeat:
            self._wake()
