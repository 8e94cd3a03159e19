"""A member inside of what AutoGraph made of a tf.function."""

from __future__ import annotations

from allaboard.analysis.stacks.autograph_frames import autograph_evidence
from allaboard.facts import Frame
from allaboard.facts.samples import REDUCE, USER, sample_member, sample_stack

MADE = "/tmp/__autograph_generated_filex8r_3k.py"


def test_the_users_own_call_is_the_place() -> None:
    inner, outer = Frame(MADE, 18, "if_body"), Frame(MADE, 24, "tf__step")
    one = sample_member(1, stack=sample_stack(inner, outer, USER))
    assert one.stack is not None and one.stack.user == USER
    (found,) = autograph_evidence(one)
    assert found.observed == (
        "it is in the Python code of the tf.function step, which is being traced"
    )
    assert str(outer) == "step, as AutoGraph has rewritten it" and "/tmp" not in str(inner)


def test_nothing_is_said_elsewhere() -> None:
    assert autograph_evidence(sample_member(1, stack=sample_stack(REDUCE, USER))) == ()
    assert autograph_evidence(sample_member(1)) == ()
