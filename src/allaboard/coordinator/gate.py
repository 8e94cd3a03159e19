"""The gate of the roll call: for whom it is opened, and when."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.roll_call.roll_call import RollCall
from allaboard.analysis.roll_call.waiting_message import waiting_message
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Answer, Claim, JobView
from allaboard.policy.end.end_policy import EndPolicy, is_proven_error
from allaboard.protocol.commands import Command, OpenGate, ShowNote
from allaboard.protocol.process_keys import split_process_key

FIRST_NOTE_S = 10.0
"""Time at the gate after which it is first shown whom all wait for."""
FIRST_NOTE_UNMET_S = 4.0
"""The same on a host that has not met the others: slow starts may not explain that."""
FACTS_GRACE_S = 2.0
"""Time after the last arrival in which every member's agent reports what it runs with."""
CALLERS_GRACE_S = 2.0
"""How long the gate stays closed after a failed roll call if a member was never heard of: it may have waited
for the leader's host, and find it just then. It must be told why it will not start."""
FOREIGN_LISTENER_GRACE_S = 20.0
"""How long the gate stays closed if something else than this job's leader answers in its place: it may be
gone before the leader comes, and a member that is let in earlier would connect to it and wait in vain."""
ONLY_REPORTED = (
    "reported only; the framework's timeout decides when to give up. "
    "Use --timeout S to abort after S seconds"
)


class Gate:
    """Opens the gate. ``launched_at`` is when the job was; ``disconnected_agents`` are those whose stream is
    broken just now."""

    def __init__(
        self,
        launched_at: float,
        policy: EndPolicy,
        other_hosts: MultiHostState,
        disconnected_agents: dict[int, float],
    ) -> None:
        self.opened_at: float | None = None
        """When the gate was opened for the first member (s)."""
        self._launched_at = launched_at
        self._policy = policy
        self._other_hosts = other_hosts
        self._disconnected_agents = disconnected_agents
        self._next_note_after_s = 0.0
        """Time at the gate after which the next note is due; 0 before the first one."""
        self._failed_at: float | None = None

    def adopt_policy(self, policy: EndPolicy) -> None:
        """Judge by this policy from now on."""
        self._policy = policy

    def mark_opened(self, now: float) -> None:
        """Note that the gate was opened for a member, here or by the leader."""
        if self.opened_at is None:
            self.opened_at = now

    def open_when_complete(
        self,
        now: float,
        rolls: tuple[RollCall, ...],
        startup_claims: list[Claim],
        is_overdue: bool = False,
    ) -> Iterator[Command]:
        """Open the gate for a complete roll call. Members stay held if a claim proves that they cannot
        start, or if they have waited for too long, unless that is only reported."""
        other_hosts = self._other_hosts
        other_hosts.declared_world_size = max((r.size for r in rolls), default=0)
        early_reason = other_hosts.early_open_reason
        if not early_reason and any(r.held_members for r in rolls):
            early_reason = other_hosts.unseen_members_reason
        has_failed = any(map(is_proven_error, startup_claims)) or any(
            r.is_interrupted for r in rolls
        )
        has_failed = has_failed or is_overdue
        if has_failed and not early_reason:
            if not self._policy.only_reports or (other_hosts.has_stale_store and not is_overdue):
                return
            self._failed_at = now if self._failed_at is None else self._failed_at
            has_unheard = other_hosts.leads and any(r.unheard_ranks for r in rolls)
            if has_unheard and now - self._failed_at < CALLERS_GRACE_S:
                return
            call = other_hosts.rendezvous_call
            is_foreign = not other_hosts.leads and call is not None and call.answer is Answer.OTHER
            is_recent = call is not None and now - call.since < FOREIGN_LISTENER_GRACE_S
            if is_foreign and is_recent and not is_overdue:
                return
            # The framework's timeout is to decide, and it runs only once the members are let in.
            early_reason = _only_reported(rolls)
        for roll in rolls:
            must_probe = roll.is_complete and other_hosts.leads and not roll.is_rpc_only
            if must_probe and not early_reason:
                if self._must_wait(roll, now):
                    continue
                yield from other_hosts.link_rounds.next_probes(now, roll)
                if not other_hosts.are_links_probed(now):
                    continue
            if not roll.is_complete and not early_reason:
                continue
            if early_reason:
                other_hosts.link_rounds.note_opened_early(roll)
            for member in roll.held_members:
                yield OpenGate(pid=member.event_key, round=roll.round, is_rpc_only=roll.is_rpc_only)
            if self.opened_at is None and not roll.is_rpc_only:
                self.opened_at = now
                text = describe_complete_roll(roll, now - self._launched_at)
                yield ShowNote(text=text if roll.is_complete else early_reason)

    def _must_wait(self, roll: RollCall, now: float) -> bool:
        """Return True if all members are there, but the gate cannot be opened yet."""
        if any(not m.facts for m in roll.held_members) and now - roll.last_arrival < FACTS_GRACE_S:
            return True
        if any(m.interrupted is not None for m in roll.held_members):
            return True  # it is about to end
        # The command would not reach a member whose agent is disconnected, and its port would be released.
        return any(
            split_process_key(m.event_key)[0] in self._disconnected_agents
            for m in roll.held_members
        )

    def waiting_notes(self, view: JobView, rolls: tuple[RollCall, ...]) -> Iterator[Command]:
        """Show on all hosts whom the job waits for, after times that double: nobody sees another host's
        terminal."""
        arrivals = [r.first_arrival for r in rolls if r.held_members]
        if not view.joined or not arrivals or self.opened_at is not None:
            return
        call = view.call
        has_met_nobody = not view.leads and call is not None and call.answer is not Answer.ABOARD
        seconds_waited = view.now - min(arrivals)
        first_note_after_s = FIRST_NOTE_UNMET_S if has_met_nobody else FIRST_NOTE_S
        note_after_s = self._next_note_after_s or first_note_after_s
        if seconds_waited >= note_after_s and (text := waiting_message(view)):
            is_early = seconds_waited < FIRST_NOTE_S
            self._next_note_after_s = FIRST_NOTE_S if is_early else 2 * note_after_s
            yield ShowNote(text=text, is_waiting_line=True)


def _only_reported(rolls: tuple[RollCall, ...]) -> str:
    """Return what follows where a failed roll call does not end the job."""
    declared = next((m.declared for r in rolls for m in r.held_members), None)
    if declared is not None and declared.framework == "tensorflow":
        return (
            "reported only; TensorFlow has no timeout of its own and waits for ever. "
            "--timeout S would end it after S seconds"
        )
    return ONLY_REPORTED


def describe_complete_roll(roll: RollCall, seconds: float) -> str:
    """Return the note that all members are there."""
    declared = roll.present[0].declared if roll.present else None
    if declared is None:
        return f"all {roll.size} ready after {seconds:.1f} s"
    suffix = f", {declared.place}" if declared.place else ""
    return f"all {roll.size} ready after {seconds:.1f} s ({declared.call}{suffix})"
