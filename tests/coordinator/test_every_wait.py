"""Every wait of an agent at the start has a bound: whatever answers at the meeting place, or nothing does.

With the user's bound the job is ended, with a finding that says why; without one the framework is let in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pytest

from allaboard.analysis.roll_call.overdue import RULES_GRACE_S, find_overdue_member
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.coordinator.gate import CALLERS_GRACE_S, Gate
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import KNOCKS, Answer, Call, Certainty, Claim, Holder, JobView, Severity, Stage
from allaboard.facts.samples import arrived_member, coming_member, gathering_job, sample_declaration
from allaboard.policy.end.end_policy import START_STAGES, EndPolicy
from allaboard.policy.end.startup_end import roll_call_verdict
from allaboard.protocol.commands import OpenGate
from allaboard.protocol.events import RendezvousProbed, RoleTaken
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules
from allaboard.rules.engine.relations import without_explained_last_resort

TIMEOUT_S, ARRIVED_AT = 12.0, 100.0
REFUSALS = ("", *KNOCKS, "tls", "auth", "full", "garbled", "unreachable", "a kind of tomorrow")
"""Why a host may be turned away, or what etcd lacks."""
PLACES = (
    "tcp://node0:29500",
    "tcp://localhost:0000",
    "file:///shared/meeting",
    "store",
    "etcd://node9:2379",
)


class Wait(NamedTuple):
    """One reason for which members are held."""

    name: str
    view: JobView
    call: Call | None


def _view(place: str, rank: int = 1, **fields: object) -> JobView:
    declared = sample_declaration(rank, 3, place=place)
    held = arrived_member(rank, declared=declared, phase_since=ARRIVED_AT)
    view = gathering_job(held, joined=True, launched=1, now=ARRIVED_AT)
    return msgspec.structs.replace(view, timeout=TIMEOUT_S, launched_at=ARRIVED_AT, **fields)


def _waits() -> Iterator[Wait]:
    for place in PLACES:
        address = place.partition("://")[2] if place.startswith("tcp") else place
        for rank in (0, 1):
            yield Wait(f"{place} rank {rank}: no role yet", _view(place, rank), None)
        yield Wait(f"{place}: leads", _view(place, 0, leads=True), None)
        holder = Holder(address="h0:29500", looked_at=ARRIVED_AT, answer=Answer.MUTE)
        yield Wait(
            f"{place}: leads, its port is taken", _view(place, 0, leads=True, holder=holder), None
        )
        stale = Call(
            address=address, answer=Answer.STORE, since=ARRIVED_AT, tries=50, joined=3, said="x"
        )
        yield Wait(f"{place}: the store of an earlier job", _view(place, call=stale), stale)
        for answer in Answer:
            for kind in REFUSALS:
                for has_shaken_hands in (False, True):
                    call = Call(
                        address=address, answer=answer, since=ARRIVED_AT, tries=50, kind=kind,
                        shook=has_shaken_hands, met="10.0.0.1:29500", said="what the system says",
                    )  # fmt: skip
                    name = f"{place}: {answer} {kind} {'after a' if has_shaken_hands else 'no'} handshake"
                    yield Wait(name, _view(place, call=call), call)


WAITS = tuple(_waits())


def _claims(view: JobView) -> list[tuple[Stage, Claim]]:
    claims = without_explained_last_resort(list(run_rules(view, load_catalogue().entries)))
    return [(entry.stage, claim) for entry, claim in claims]


def _at(wait: Wait, seconds: float) -> JobView:
    return msgspec.structs.replace(wait.view, now=ARRIVED_AT + seconds)


@pytest.mark.parametrize("place", PLACES)
def test_the_users_bound_ends_every_wait_with_a_reason(place: str) -> None:
    for wait in (w for w in WAITS if w.name.startswith(place)):
        view = _at(wait, TIMEOUT_S + RULES_GRACE_S)
        claims = _claims(view)
        verdict = roll_call_verdict(view, find_roll_calls(view), claims, EndPolicy())
        assert verdict is not None, wait.name
        errors = [c for s, c in claims if s in START_STAGES and c.severity is Severity.ERROR]
        assert errors, f"{wait.name}: ended without a finding"


@pytest.mark.parametrize("place", PLACES)
def test_without_a_bound_every_wait_ends_with_the_framework(place: str) -> None:
    for wait in (w for w in WAITS if w.name.startswith(place)):
        other_hosts = MultiHostState("a", joined=True)
        other_hosts.apply_event(RoleTaken(leads=wait.view.leads))
        other_hosts.declared_world_size = 3
        if wait.call is not None:
            other_hosts.apply_event(RendezvousProbed(call=wait.call))
        gate = Gate(ARRIVED_AT, EndPolicy(only_reports=True), other_hosts, {})

        def opens(seconds: float, gate: Gate = gate, wait: Wait = wait) -> bool:
            view = _at(wait, seconds)
            rolls = find_roll_calls(view)
            claims = [c for s, c in _claims(view) if s in START_STAGES]
            is_overdue = find_overdue_member(view, rolls) is not None
            commands = gate.open_when_complete(view.now, rolls, claims, is_overdue)
            return any(isinstance(c, OpenGate) for c in commands)

        bound_s = TIMEOUT_S + RULES_GRACE_S
        assert opens(bound_s) or opens(bound_s + CALLERS_GRACE_S), wait.name


def test_before_its_time_a_wait_is_not_overdue_and_a_live_member_extends_it() -> None:
    wait = WAITS[0]
    early = _at(wait, TIMEOUT_S)
    assert find_overdue_member(early, find_roll_calls(early)) is None
    late = _at(wait, 10 * TIMEOUT_S)
    coming = msgspec.structs.replace(late, members=(*late.members, coming_member(2)))
    assert find_overdue_member(late, find_roll_calls(late)) is not None
    assert find_overdue_member(coming, find_roll_calls(coming)) is None


def test_a_finding_that_is_not_certain_does_not_take_the_bound_away() -> None:
    view = _at(WAITS[0], TIMEOUT_S + RULES_GRACE_S)
    ((stage, claim), *_) = _claims(view)
    doubtful = msgspec.structs.replace(claim, certainty=Certainty.LIKELY, summary="a likely cause")
    verdict = roll_call_verdict(view, find_roll_calls(view), [(stage, doubtful)], EndPolicy())
    assert verdict is not None and "a likely cause" in verdict.reason
