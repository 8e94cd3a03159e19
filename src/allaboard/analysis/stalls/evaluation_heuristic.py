"""Members that evaluate, recognised by the names of their functions where no hook of a framework reports it.

That is so in plain Python and in JAX. From outside, a metric that one rank computes looks like an endless
loop; only the function's name gives it away.
"""

from __future__ import annotations

import re

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stall import IDLE_CORES
from allaboard.facts import Member
from allaboard.late_pattern import compile_late

_EVALUATION_NAMES = compile_late(
    r"(?:^|_)(?:evals?|evaluate|evaluation|evaluator|validate|validation|test|predict|predictions?"
    r"|inference|generate|rollouts?|metrics?|scores?|accuracy|bleu|rouge|fid|perplexity)(?:_|$)",
    re.IGNORECASE,
)


def evaluates_by_name(member: Member) -> bool:
    """Return True if the member computes in a user's function that is named after an evaluation.

    It computes in Python itself, or in an operation that TensorFlow executes eagerly.
    """
    if (
        member.stack is None
        or member.op is not None
        or classify_stack(member.stack) not in (Spot.USER, Spot.STEP)
    ):
        return False
    if member.cpu < IDLE_CORES and member.os_state != "R" and not member.stack.moving:
        return False
    return any(f.is_user and _EVALUATION_NAMES.search(f.function) for f in member.stack.frames)
