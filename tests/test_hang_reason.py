"""What is said of a job that is ended for a hang of which no rule could tell more: pure."""

from __future__ import annotations

from allaboard.facts import Certainty, Claim, Frame, Member, Stage
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict

POLICY = EndPolicy(stop_on_hang=True, hang_after=8.0)
MATCH = sample_stack(Frame("/usr/lib/python3.11/re/__init__.py", 166, "match"), USER, samples=3)


def reason(*others: Member, claims: tuple[Claim, ...] = ()) -> str:
    view = stalled_job(waiting_member(0), *others, waiting_member(2))
    found = end_verdict(view, [], [(Stage.RUNTIME, c) for c in claims], POLICY)
    assert found is not None
    return found.reason


def test_who_was_not_in_the_collective_is_told_with_its_place() -> None:
    said = reason(sample_member(1, stack=MATCH, cpu=0.1))
    assert said.startswith("job stopped because of a hang: no progress for 10 s (--hang-after 8); ")
    assert said.endswith("; worker 1 is at train.py:41 in train, not in the collective")


def test_what_a_rule_has_told_is_not_told_twice() -> None:
    one = sample_member(1, stack=MATCH, cpu=0.1)
    told = Claim(summary="stuck", who=(one.who,), certainty=Certainty.LIKELY)
    assert reason(one, claims=(told,)).endswith("8)")


def test_where_nobody_has_been_looked_at_nothing_is_made_up() -> None:
    assert reason(sample_member(1)).endswith("8)")
