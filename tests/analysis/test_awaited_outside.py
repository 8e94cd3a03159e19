"""What a host says that waits and has not met the others."""

from __future__ import annotations

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.coordinator.gate import FIRST_NOTE_S, FIRST_NOTE_UNMET_S, Gate
from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Answer, JobView
from allaboard.policy.end.end_policy import EndPolicy


def told(gate: Gate, view: JobView, waited: float) -> list[str]:
    first = min(m.phase_since for m in view.members)
    later = msgspec.structs.replace(view, now=first + waited)
    return [note.text for note in gate.waiting_notes(later, find_roll_calls(later))]  # type: ignore[union-attr]


def gate() -> Gate:
    return Gate(0.0, EndPolicy(), MultiHostState("a", True), {})


def test_a_refusal_is_told_as_a_state_long_before_it_is_a_finding() -> None:
    refused, door = example_attempt(Answer.REFUSED, said="Connection refused"), gate()
    assert not told(door, refused, FIRST_NOTE_UNMET_S - 0.1)
    (said,) = told(door, refused, FIRST_NOTE_UNMET_S)
    assert said.startswith(
        "waiting 4 s for rank 0 (node0:29500): not started yet (its host is up and refuses"
    )
    assert not told(door, refused, FIRST_NOTE_S - 0.1)
    assert len(told(door, refused, FIRST_NOTE_S)) == 1
    assert not told(door, refused, 2 * FIRST_NOTE_S - 0.1)
    assert len(told(door, refused, 2 * FIRST_NOTE_S)) == 1


def test_what_is_met_there_is_told_in_words() -> None:
    for answer in Answer:
        (said,) = told(
            gate(), example_attempt(answer, said=f"tls: {answer} is there"), FIRST_NOTE_S
        )
        state = said.partition("where the workers meet: ")[2] or said.partition("started yet (")[2]
        assert len(state.split()) > 2


def test_who_has_met_the_others_waits_in_silence_for_longer() -> None:
    door, aboard = gate(), example_attempt(Answer.ABOARD)
    assert not told(door, aboard, FIRST_NOTE_S - 0.1)
    assert len(told(door, aboard, FIRST_NOTE_S)) == 1
