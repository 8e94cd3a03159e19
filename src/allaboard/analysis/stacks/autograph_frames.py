"""Frames in code that TensorFlow's AutoGraph has rewritten: which tf.function they belong to."""

from __future__ import annotations

from allaboard.facts import Evidence, Member
from allaboard.facts.stack import AUTOGRAPH


def autograph_evidence(member: Member) -> tuple[Evidence, ...]:
    """Return in which tf.function's Python code this member is; () if it is in none.

    The user cannot look into AutoGraph's file, so findings blame the line that calls the function.
    """
    frames = member.stack.frames if member.stack is not None else ()
    outer = next((f for f in reversed(frames) if AUTOGRAPH in f.file), None)
    if outer is None:
        return ()
    name = outer.function.removeprefix("tf__")
    return (
        Evidence(
            f"it is in the Python code of the tf.function {name}, which is being traced", "stack"
        ),
    )
