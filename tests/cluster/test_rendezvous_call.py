"""What counts of several attempts to reach the leader."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.cluster.rendezvous_call import LASTING_KINDS, next_call
from allaboard.facts import Answer, Call


def call(answer: Answer, since: float, kind: str = "", said: str = "", shook: bool = False) -> Call:
    proven = not kind
    return Call(
        address="h0:1", answer=answer, since=since, kind=kind, said=said, shook=shook, is_proven=proven
    )  # fmt: skip


def after(*attempts: Call) -> Call:
    state = None
    for attempt in attempts:
        state = next_call(state, attempt)
    assert state is not None
    return state


def test_the_same_answer_counts_from_its_first_time() -> None:
    state = after(call(Answer.SILENT, 1.0), call(Answer.REFUSED, 2.0), call(Answer.REFUSED, 3.0))
    assert (state.answer, state.since, state.tries) == (Answer.REFUSED, 2.0, 2)


def test_a_host_that_was_taken_in_once_stays_so() -> None:
    assert after(call(Answer.ABOARD, 1.0, shook=True), call(Answer.REFUSED, 2.0)).shook


@pytest.mark.parametrize("kind", LASTING_KINDS)
def test_a_refusal_outlasts_the_port_that_closes(kind: str) -> None:
    turned_away = call(Answer.OTHER, 2.0, kind, "this is h1")
    closing = (call(Answer.CLOSED, 3.0), call(Answer.REFUSED, 4.0))
    state = after(turned_away, turned_away, *closing)
    assert (state.answer, state.kind, state.said) == (Answer.OTHER, kind, "this is h1")
    assert (state.since, state.tries, state.closed_since) == (2.0, 2, 3.0)
    assert not state.is_proven


def test_a_refusal_tells_nothing_of_another_address() -> None:
    turned_away = call(Answer.OTHER, 1.0, "elsewhere", "this is h1")
    other = msgspec.structs.replace(call(Answer.REFUSED, 2.0), address="h1:1")
    assert after(turned_away, other).answer is Answer.REFUSED


def test_whoever_answers_later_is_the_news() -> None:
    turned_away, refused = call(Answer.OTHER, 1.0, "other-job"), call(Answer.REFUSED, 2.0)
    taken_in = after(turned_away, refused, call(Answer.ABOARD, 3.0, shook=True))
    assert (taken_in.answer, taken_in.kind, taken_in.closed_since) == (Answer.ABOARD, "", 0.0)
    again = after(turned_away, refused, turned_away)
    assert (again.answer, again.closed_since) == (Answer.OTHER, 0.0)


@pytest.mark.parametrize("kind", ["", "no-meeting", "other"])
def test_other_answers_do_not_outlast_it(kind: str) -> None:
    """A program that is none of ours has ended; "no-meeting" passes by itself."""
    assert after(call(Answer.OTHER, 1.0, kind), call(Answer.REFUSED, 2.0)).answer is Answer.REFUSED
