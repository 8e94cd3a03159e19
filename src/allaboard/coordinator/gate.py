"""The door of the roll call: whom it is opened for, and when."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.analysis.roll_call.waiting_message import waiting_message
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Answer, Claim, JobView
from allaboard.policy.end.end_policy import EndPolicy, is_proven_error
from allaboard.protocol.commands import Command, OpenGate, ShowNote
from allaboard.protocol.process_keys import split_process_key

FIRST_WAIT, OUTSIDE = 10.0, 4.0
"""Seconds at the door after which it is told whom all wait for, first; where this host has not met the
others, which want of time may not explain."""
ANSWERS = 2.0
"""Seconds after the last arrival in which every member's agent tells what it runs with."""
CALLERS = 2.0
"""Seconds that the door is kept where the roll call has failed and somebody was never heard of: they may have
waited for the host where all meet, and find it just then. They must be told why they will not start."""


class Gate:
    """``began`` is when the job did; ``away`` are the agents whose stream is broken just now."""

    def __init__(
        self, began: float, policy: EndPolicy, crossing: MultiHostState, away: dict[int, float]
    ) -> None:
        self.opened_at: float | None = None
        """When the first member was let through."""
        self._began = began
        self._policy = policy
        self._crossing = crossing
        self._away = away
        self._told = 0.0
        self._wrong_at: float | None = None

    def mark_opened(self, now: float) -> None:
        """A member was let through, here or by the host where all meet."""
        if self.opened_at is None:
            self.opened_at = now

    def open_when_complete(
        self, now: float, rolls: tuple[RollCall, ...], startup_claims: list[Claim]
    ) -> Iterator[Command]:
        """Lets a complete roll call through; what a rule of the ``startup`` proved wrong stays held."""
        self._crossing.declared_world_size = max((r.size for r in rolls), default=0)
        waved_on = self._crossing.early_open_reason
        wrong = any(map(is_proven_error, startup_claims)) or any(r.is_interrupted for r in rolls)
        if wrong and not waved_on:
            if not self._policy.only_reports or self._crossing.has_stale_store:
                return
            self._wrong_at = now if self._wrong_at is None else self._wrong_at
            unheard = self._crossing.leads and any(r.unheard_ranks for r in rolls)
            if unheard and now - self._wrong_at < CALLERS:
                return
            waved_on = "told; the framework's own timeout decides (--timeout S makes it a bound)"
        for roll in rolls:
            if roll.is_complete and self._crossing.leads and not waved_on and not roll.is_rpc_only:
                if self._incomplete(roll, now):
                    continue
                yield from self._crossing.next_probes(now, roll)
                if not self._crossing.are_links_probed(now):
                    continue
            if not roll.is_complete and not waved_on:
                continue
            if waved_on:
                self._crossing.note_opened_early(roll)
            for member in roll.held:
                yield OpenGate(pid=member.called, round=roll.round, beside=roll.is_rpc_only)
            if self.opened_at is None and not roll.is_rpc_only:
                self.opened_at = now
                done = _all_aboard(roll, now - self._began) if roll.is_complete else waved_on
                yield ShowNote(text=done)

    def _incomplete(self, roll: RollCall, now: float) -> bool:
        """Whether all are there, and yet something is to be waited for."""
        if any(not m.facts for m in roll.held) and now - roll.last_arrival < ANSWERS:
            return True
        if any(m.interrupted is not None for m in roll.held):
            return True  # it ends
        # The word would not reach one whose agent is away, and the port would be gone.
        return any(split_process_key(m.called)[0] in self._away for m in roll.held)

    def waiting_notes(self, view: JobView, rolls: tuple[RollCall, ...]) -> Iterator[Command]:
        """On several hosts nobody sees another's terminal: whom all wait for is told to all, after times that
        double."""
        arrived = [r.first_arrival for r in rolls if r.held]
        if not view.joined or not arrived or self.opened_at is not None:
            return
        call = view.call
        outside = not view.leads and call is not None and call.answer is not Answer.ABOARD
        waited = view.now - min(arrived)
        due = self._told or (OUTSIDE if outside else FIRST_WAIT)
        if waited >= due and (text := waiting_message(view)):
            self._told = 2 * due if waited >= FIRST_WAIT else FIRST_WAIT
            yield ShowNote(text=text, waits=True)


def _all_aboard(roll: RollCall, seconds: float) -> str:
    first = roll.present[0].declared
    assert first is not None
    where = f", {first.place}" if first.place else ""
    return f"all {roll.size} aboard after {seconds:.1f} s ({first.call}{where})"
