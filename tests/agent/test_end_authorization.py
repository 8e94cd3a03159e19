"""What another host's coordinator may end here, by what the user allowed here."""

from __future__ import annotations

from allaboard.agent.end_authorization import may_end
from allaboard.agent.options import Options
from allaboard.facts import JobView, Outcome
from allaboard.facts.samples import arrived_member, ended_member, sample_job, sample_member
from allaboard.protocol.commands import EndJob

TRAINS = sample_job(sample_member(0))
WAITS = sample_job(arrived_member(0))


def ends(outcome: Outcome, view: JobView, **allowed: object) -> bool:
    options = Options(**({"strict": False} | allowed))  # type: ignore[arg-type]
    return may_end(EndJob(outcome=outcome, reason="another host says so"), options, view)


def test_a_timeout_allows_the_end_of_a_roll_call_and_nothing_else() -> None:
    assert ends(Outcome.ROLL_CALL_FAILED, WAITS, strict=True)
    assert not ends(Outcome.ROLL_CALL_FAILED, WAITS)
    assert not ends(Outcome.ROLL_CALL_FAILED, TRAINS, strict=True), "it has begun"
    assert ends(Outcome.INTERRUPTED, WAITS, strict=True), "who is awaited was interrupted"
    assert not ends(Outcome.INTERRUPTED, TRAINS, strict=True)
    for outcome in (Outcome.HANG, Outcome.FAILED, Outcome.COMPLETED):
        assert not ends(outcome, TRAINS, strict=True), outcome
        assert not ends(outcome, WAITS, strict=True), outcome


def test_a_hang_ends_where_that_was_asked_for_here_too() -> None:
    assert ends(Outcome.HANG, TRAINS, stop_on_hang=True)
    assert not ends(Outcome.FAILED, TRAINS, stop_on_hang=True)


def test_who_knows_the_secret_is_believed_and_so_is_everybody_in_a_rehearsal() -> None:
    assert ends(Outcome.FAILED, TRAINS, secret=b"s")
    assert ends(Outcome.FAILED, TRAINS, stop_on_error=True)


def test_what_is_done_may_be_ended() -> None:
    assert ends(Outcome.COMPLETED, sample_job(ended_member(0, 0.0)))
