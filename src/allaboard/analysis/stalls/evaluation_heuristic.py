"""Who evaluates by the name of its function, where no hook of a framework tells: in plain Python, in JAX.

From outside, a metric that one rank computes looks like a loop that never ends; its name does not.
"""

from __future__ import annotations

import re

from allaboard.analysis.stacks.stack_classifier import Spot, spot
from allaboard.analysis.stalls.stall import IDLE_CORES
from allaboard.facts import Member

_EVALUATION_NAMES = re.compile(
    r"(?:^|_)(?:evals?|evaluate|evaluation|evaluator|validate|validation|test|predict|predictions?"
    r"|inference|generate|rollouts?|metrics?|scores?|accuracy|bleu|rouge|fid|perplexity)(?:_|$)",
    re.IGNORECASE,
)


def evaluates_by_name(member: Member) -> bool:
    """Whether it computes in a function of the user's own that is called after an evaluation: in Python, or
    in an operation that TensorFlow runs at once."""
    if (
        member.stack is None
        or member.op is not None
        or spot(member.stack) not in (Spot.USER, Spot.STEP)
    ):
        return False
    if member.cpu < IDLE_CORES and member.os_state != "R" and not member.stack.moving:
        return False
    return any(f.is_user and _EVALUATION_NAMES.search(f.function) for f in member.stack.frames)
