"""Attempts of this host to reach the rendezvous address, as rules read them."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.analysis.roll_call.task_names import task_addresses
from allaboard.facts import Address, Answer, Call, Certainty, Evidence, JobView, Severity
from allaboard.facts.member import Member, Phase
from allaboard.facts.samples import NOW, arrived_member, gathering_job, sample_declaration


class RendezvousAttempt(NamedTuple):
    """A member of this host that waits while the rendezvous address cannot be reached."""

    member: Member
    """The member that has waited longest."""
    call: Call
    """The attempts of its host to reach the address."""
    waited_s: float
    """Seconds that the member has waited."""
    is_serving: bool = False
    """True for a task that serves and is not held at the gate; then the seconds count since it is up."""

    @property
    def certainty(self) -> Certainty:
        """Return LIKELY for a serving task, which may rightly be up long before its peers; else CERTAIN."""
        return Certainty.LIKELY if self.is_serving else Certainty.CERTAIN

    @property
    def severity(self) -> Severity:
        """Return WARNING for a serving task, else ERROR."""
        return Severity.WARNING if self.is_serving else Severity.ERROR

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return the answer to the attempts, their number, and where the address was read."""
        call = self.call
        resolved = f" ({call.met})" if call.met and not call.address.startswith(call.met) else ""
        times = f", {call.tries} times" if call.tries > 1 else ""
        unproved = () if call.is_proven else (Evidence(f"says {call.address}, unproved"),)
        closed = ", then the port was closed" if call.closed_since else ""
        return (
            *unproved,
            Evidence(
                f"connect to {call.address}{resolved}: {call.said}{times}{closed}",
                self.member.who.host,
            ),
            Evidence(call.address, self.origin),
        )

    @property
    def origin(self) -> str:
        """Return where the address was read: an environment variable, an option, or the rendezvous itself."""
        declared = self.member.declared
        if declared is None:
            return ""
        is_declared_address = (
            f"//{self.call.address}" in declared.place
            or self.call.address in declared.cluster.values()
        )
        if is_declared_address or declared.place.startswith("file:"):
            return declared.origin
        return (
            "--coordinator"
            if self.call.is_given_by_user
            else "published by the host where the workers meet"
        )

    @property
    def is_published(self) -> bool:
        """Return True if the host where the workers meet has published the address; another one may do so
        next."""
        return self.origin.startswith("published")

    @property
    def is_first_members_own(self) -> bool:
        """True if the address is the first member's, as another member's configuration has it, and nothing
        ever answered there."""
        declared = self.member.declared
        is_configured = self.origin != "--coordinator" and not self.is_published
        return declared is not None and declared.rank != 0 and is_configured and not self.call.shook

    @property
    def is_deputys(self) -> bool:
        """Return True if the address is another member's, which is asked while the first one has not started.

        Once the first one is there, that member goes to it as well, and sends everybody there.
        """
        declared = self.member.declared
        if declared is None or self.call.is_given_by_user:
            return False
        if declared.cluster:
            deputies = task_addresses(declared)[1:]
            return self.call.address in deputies
        return declared.place.startswith("tcp://") and self.call.address not in declared.place

    @property
    def resolved_host(self) -> str:
        """Return the IP address to which the host's name resolved; the name if it is not known."""
        return Address.from_endpoint(self.call.met).host or self.host_name

    @property
    def port(self) -> str:
        """Return the port of the rendezvous address."""
        return Address.from_endpoint(self.call.address).port

    @property
    def host_name(self) -> str:
        """Return the host of the rendezvous address, as configured."""
        return Address.from_endpoint(self.call.address).host


def find_attempt(
    view: JobView, *answers: Answer, include_serving: bool = False
) -> RendezvousAttempt | None:
    """Return the attempt of this host if a member waits and the leading host answers in one of these ways.

    ``include_serving`` also looks at tasks that are not held at the gate (a server, a worker beside a chief)
    and have never been taken in. Set it only for answers that time does not change: servers are rightly up
    long before the others.
    """
    call = view.call
    if not view.joined or view.leads or call is None or call.answer not in answers:
        return None
    waiting = [m for roll in find_roll_calls(view) for m in roll.held_members]
    is_serving = include_serving and not waiting and not call.shook
    if is_serving:
        waiting = [m for roll in find_roll_calls(view) for m in roll.present if _is_unheld(m)]
    if not waiting:
        return None
    # The one that has waited longest tells most about the address.
    member = min(waiting, key=lambda m: m.phase_since)
    return RendezvousAttempt(
        member, call, view.now - max(member.phase_since, view.launched_at), is_serving
    )


def _is_unheld(member: Member) -> bool:
    return member.alive and member.declared is not None and not member.declared.hold


def find_overdue_attempt(
    view: JobView, *answers: Answer, include_serving: bool = False
) -> RendezvousAttempt | None:
    """Return the attempt (`find_attempt`) if it has lasted for as long as the roll call may take.

    A serving task must have had one and the same answer all that time.
    """
    current = find_attempt(view, *answers, include_serving=include_serving)
    if current is None or current.waited_s < view.timeout:
        return None
    return (
        current if not current.is_serving or view.now - current.call.since >= view.timeout else None
    )


def example_attempt(
    answer: Answer, waited: float = 61.0, said: str = "", serves: bool = False, **changes: object
) -> JobView:
    """Return a view for rules' examples: rank 1 of 3 at the gate, whose attempts get this answer.

    ``serves`` makes it a parameter server, which is not held at the gate.
    """
    declaration = sample_declaration(1, place="tcp://node0:29500")
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
        declaration = sample_declaration(
            1, place="tcp://node0:29500", job="ps", index=0, hold=False
        )
    phase = Phase.JOINED if serves else Phase.ARRIVED
    member = arrived_member(1, declared=declaration, phase_since=NOW - waited, phase=phase)
    return gathering_job(member, joined=True, launched=1, call=call)
