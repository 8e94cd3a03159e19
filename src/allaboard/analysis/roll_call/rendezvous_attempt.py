"""This host's attempts to reach the meeting place, as rules read them."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.roll_call.roll_call import roll_calls
from allaboard.facts import (
    Address,
    Answer,
    Call,
    Certainty,
    Evidence,
    JobView,
    Member,
    Phase,
    Severity,
)
from allaboard.facts.samples import NOW, declared, gathering, held


class RendezvousAttempt(NamedTuple):
    """``member`` stands at the door of init since ``waited`` s; its host's attempts are ``call``. ``serves``:
    nobody holds it, and it has been up for so long."""

    member: Member
    call: Call
    waited_s: float
    is_serving: bool = False

    @property
    def certainty(self) -> Certainty:
        """Who serves may be up long before there is anybody to be met."""
        return Certainty.LIKELY if self.is_serving else Certainty.CERTAIN

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.is_serving else Severity.ERROR

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was met, how often, and where the address was read."""
        call = self.call
        resolved = f" ({call.met})" if call.met and not call.address.startswith(call.met) else ""
        times = f", {call.tries} times" if call.tries > 1 else ""
        return (
            Evidence(
                f"connect to {call.address}{resolved}: {call.said}{times}", self.member.who.host
            ),
            Evidence(call.address, self.origin),
        )

    @property
    def origin(self) -> str:
        """Where the address was read."""
        declared = self.member.declared
        if declared is None:
            return ""
        is_declared_address = (
            f"//{self.call.address}" in declared.place
            or self.call.address in declared.cluster.values()
        )
        if is_declared_address or declared.place.startswith("file:"):
            return declared.origin
        return "--coordinator" if self.call.given else "posted by the host where all meet"

    @property
    def resolved_host(self) -> str:
        """The address that the name led to; the name where none is known."""
        return Address.from_endpoint(self.call.met).host or self.host_name

    @property
    def port(self) -> str:
        return Address.from_endpoint(self.call.address).port

    @property
    def host_name(self) -> str:
        return Address.from_endpoint(self.call.address).host


def find_attempt(
    view: JobView, *answers: Answer, include_serving: bool = False
) -> RendezvousAttempt | None:
    """Where somebody of this host waits, another host leads, and it answers in one of these ways. ``served``:
    also where a server, or a worker beside a chief, which nobody holds, has never been taken in: for what no
    time mends, since servers are up long before the others by right."""
    call = view.call
    if not view.joined or view.leads or call is None or call.answer not in answers:
        return None
    waiting = [m for roll in roll_calls(view) for m in roll.held]
    is_serving = include_serving and not waiting and not call.shook
    if is_serving:
        waiting = [m for roll in roll_calls(view) for m in roll.present if _is_unheld(m)]
    if not waiting:
        return None
    member = min(waiting, key=lambda m: m.phase_since)
    return RendezvousAttempt(
        member, call, view.now - max(member.phase_since, view.launched_at), is_serving
    )


def _is_unheld(member: Member) -> bool:
    return member.alive and member.declared is not None and not member.declared.hold


def find_overdue_attempt(
    view: JobView, *answers: Answer, include_serving: bool = False
) -> RendezvousAttempt | None:
    """An `attempt` that has gone on for as long as the roll call may take; of who serves, with one and the
    same answer."""
    current = find_attempt(view, *answers, include_serving=include_serving)
    if current is None or current.waited_s < view.timeout:
        return None
    return (
        current if not current.is_serving or view.now - current.call.since >= view.timeout else None
    )


def example_attempt(
    answer: Answer, waited: float = 61.0, said: str = "", serves: bool = False, **changes: object
) -> JobView:
    """A view for rules' examples: rank 1 of 3 at the door, and how its attempts end. ``serves``: it is a
    parameter server, which nobody holds."""
    declaration = declared(1, place="tcp://node0:29500")
    call = Call(
        address="node0:29500",
        answer=answer,
        since=NOW - waited,
        tries=50,
        met="10.0.0.1:29500" if answer is not Answer.NO_NAME else "",
        said=said,
        **changes,  # type: ignore[arg-type]  # fields of Call
    )
    if serves:
        declaration = declared(1, place="tcp://node0:29500", job="ps", index=0, hold=False)
    phase = Phase.JOINED if serves else Phase.ARRIVED
    member = held(1, declared=declaration, phase_since=NOW - waited, phase=phase)
    return gathering(member, joined=True, launched=1, call=call)
