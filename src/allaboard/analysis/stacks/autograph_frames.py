"""What is known of a place inside of code that TensorFlow has rewritten: whose function it is."""

from __future__ import annotations

from allaboard.facts import Evidence, Member
from allaboard.facts.stack import AUTOGRAPH


def autograph_evidence(member: Member) -> tuple[Evidence, ...]:
    """The tf.function in whose Python this member is. AutoGraph's file is not the user's to look into: what
    is blamed is the line that calls the function."""
    frames = member.stack.frames if member.stack is not None else ()
    outer = next((f for f in reversed(frames) if AUTOGRAPH in f.file), None)
    if outer is None:
        return ()
    name = outer.function.removeprefix("tf__")
    return (
        Evidence(
            f"it is in Python inside of the tf.function {name}, while that is traced", "stack"
        ),
    )
