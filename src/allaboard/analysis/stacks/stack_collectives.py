"""The collective that a stack is in, and ranks that all wait, but not in the same collective.

Ranks that wait in different collectives wait for each other for ever. One sample of the stacks shows the
calls; it cannot show whether the job moves.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.stacks.framework_collectives import find_own_collective
from allaboard.analysis.stacks.own_collective import OwnCollective
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stacks.stack_groups import StackGroup
from allaboard.facts import Frame, Stack
from allaboard.late_pattern import compile_late

_CALL_FILES = compile_late(
    r"(?:^|/)(?:torch/distributed/(?:distributed_c10d|_functional_collectives)\.py"
    r"|horovod/(?:torch|tensorflow|mxnet)/mpi_ops\.py"
    r"|jax/experimental/multihost_utils\.py)$"
)
"""Files whose functions are the collectives that programs call."""
_WRAPPERS = compile_late(r"wrapper|func_wrapper|inner|_.*|synchronize|wait|poll|wait_tensor")
"""Functions of these files that do not say which collective it is."""
MESSAGES = compile_late(r"(?:i?send|i?recv|batch_isend_irecv)(?:_object_list|_anysource)?")
"""Calls of two ranks, which rightly differ: one sends, and the other receives."""
_ONE_FOR_ALL = compile_late(
    r"(?:monitored_)?barrier|broadcast.*|scatter.*|gather|gather_object|reduce|new_group"
)
"""Collectives that ranks rightly call at lines of their own: for the root, for the one that goes first."""
_WAITS = (Spot.COLLECTIVE, Spot.GROUP, Spot.STEP)


class StackCollective(msgspec.Struct, frozen=True):
    """What a rank waits in, by its stack alone."""

    call: str
    """Name of the function that the program or the framework called; "" if the stack does not show it."""
    own: OwnCollective | None
    """The collective of a framework's own that this is; None if the program itself called it."""
    spot: Spot
    """The kind of place."""
    user: Frame | None
    """The user's line that it was called from; None if there is none."""

    in_backward: bool = False
    """True if autograd calls it in a backward."""

    def __str__(self) -> str:
        if self.own is not None:
            return f"{self.own.name} ({self.call})" if self.call else self.own.name
        if self.spot is Spot.STEP:
            return self.call or "a training step"
        return (self.call or "a collective") + (" (in backward)" if self.in_backward else "")


def find_stack_collective(frames: tuple[Frame, ...]) -> StackCollective | None:
    """Return what these frames (innermost first) wait in; None if they do not wait for all peers."""
    stack = Stack(frames=frames, taken_at=0.0)
    spot = classify_stack(stack)
    if spot not in _WAITS:
        return None
    call = ""
    for frame in frames:
        if frame.is_user:
            break
        if spot is Spot.STEP:
            call = "backward" if "torch/autograd/" in frame.file else call
        # The outermost one counts: all_gather_object calls all_gather.
        elif _CALL_FILES.search(frame.file) and not _WRAPPERS.fullmatch(frame.function):
            call = frame.function
    return StackCollective(
        call=call,
        own=find_own_collective(frames),
        spot=spot,
        user=stack.user,
        in_backward=any("torch/autograd/" in f.file for f in frames),
    )


def describe_stack_collective(stack: Stack | None) -> str:
    """Return "in barrier" for a stack that shows which collective it is in; "" for any other."""
    collective = find_stack_collective(stack.frames) if stack is not None else None
    if collective is None or collective.spot is not Spot.COLLECTIVE:
        return ""
    return f"in {collective}" if collective.call or collective.own is not None else ""


class DifferentCollectives(msgspec.Struct, frozen=True):
    """Ranks that all wait in collectives, but not in the same one."""

    sides: tuple[tuple[StackCollective, tuple[int, ...]], ...]
    """Each collective with its ranks, in the order of their first ranks."""
    outliers: tuple[int, ...]
    """The ranks outside of the majority; all ranks if there is no majority."""

    @property
    def are_same_call(self) -> bool:
        """True if the ranks call one function, from different lines."""
        return len({(s.call, s.own) for s, _ in self.sides}) == 1


def find_different_collectives(groups: Iterable[StackGroup]) -> DifferentCollectives | None:
    """Return the collectives in which the ranks wait; None unless all wait, and in different ones."""
    ranks_by_key: dict[object, list[int]] = {}
    examples: dict[object, StackCollective] = {}
    for group in groups:
        if not group.frames:
            continue
        collective = find_stack_collective(group.frames)
        # Who sends waits for one peer, and that it is in another call may be in order.
        if collective is None or _is_message(collective):
            return None
        key = collective.call, collective.own, collective.spot
        examples.setdefault((key, _own_line(collective)), collective)
        ranks_by_key.setdefault((key, _own_line(collective)), []).extend(group.ranks)
    kinds = {(c.call, c.own, c.spot) for c in examples.values()}
    steps_alone = all(c.spot is Spot.STEP for c in examples.values())
    if len(ranks_by_key) < 2 or steps_alone or (len(kinds) == 1 and _may_differ_in_line(examples)):
        return None
    if len(kinds) > 1:  # the lines of one call are told apart only where nothing else differs
        ranks_by_key, examples = _without_lines(ranks_by_key, examples)
    sides = sorted(
        ((examples[k], tuple(sorted(r))) for k, r in ranks_by_key.items()), key=lambda s: s[1][0]
    )
    total = sum(len(r) for _, r in sides)
    largest = max((r for _, r in sides), key=len)
    has_majority = len(largest) * 2 > total
    outliers = [r for _, ranks in sides if not has_majority or ranks != largest for r in ranks]
    return DifferentCollectives(tuple(sides), tuple(sorted(outliers)))


def _is_message(collective: StackCollective) -> bool:
    is_own_message = collective.own is not None and collective.own.is_message
    return is_own_message or MESSAGES.fullmatch(collective.call) is not None


def _own_line(collective: StackCollective) -> tuple[str, int] | None:
    user = collective.user
    return (user.file, user.line) if user is not None else None


def _may_differ_in_line(examples: dict[object, StackCollective]) -> bool:
    """Return True if ranks may rightly make this one call from different lines."""
    return any(not c.call or bool(_ONE_FOR_ALL.fullmatch(c.call)) for c in examples.values())


def _without_lines(
    ranks_by_key: dict[object, list[int]], examples: dict[object, StackCollective]
) -> tuple[dict[object, list[int]], dict[object, StackCollective]]:
    joined_ranks: dict[object, list[int]] = {}
    joined_examples: dict[object, StackCollective] = {}
    for key, ranks in ranks_by_key.items():
        collective = examples[key]
        kind = collective.call, collective.own, collective.spot
        joined_ranks.setdefault(kind, []).extend(ranks)
        joined_examples.setdefault(kind, collective)
    return joined_ranks, joined_examples
