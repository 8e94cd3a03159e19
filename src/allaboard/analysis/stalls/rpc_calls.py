"""Members that wait for the answer of PyTorch's RPC, and those that run the function it should come from.

RPC runs a function in a thread of the process that is called; the main thread of that process is elsewhere,
often in `rpc.shutdown`. A call tells no rank to which it went: all that run a function are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stall import is_settled_stack, is_still
from allaboard.facts import Frame, JobView, Member, Stack
from allaboard.facts.memo import cached_per_view
from allaboard.late_pattern import compile_late

_RPC_FILE = compile_late(r"(?:^|/)torch/(?:distributed/rpc/\w+|futures/__init__)\.py$")
_RPC_CALL = compile_late(r"\brpc_(?:a?sync)\s*\(|\.to_here\s*\(")
_RPC_API = compile_late(r"(?:^|/)torch/distributed/rpc/api\.py$")
_WAIT_CALL = compile_late(r"\.(?:wait|value)\s*\(")
"""A future of RPC waits in C: only the source line shows it, and a collective's Work looks the same."""
MAX_CORES = 0.3
"""Cores that a member uses at most, without those with which RPC polls; native code that computes for a call
uses more."""


class RpcFunction(NamedTuple):
    """A function of the user's own that a member runs for a call of RPC."""

    member: Member
    """The member that was called."""
    stack: Stack
    """Frames of the thread that runs the function, with how often they were sampled."""


class RpcWait(NamedTuple):
    """Members that wait for answers of RPC."""

    callers: tuple[Member, ...]
    """The members that wait."""
    functions: tuple[RpcFunction, ...]
    """What stands still meanwhile; () if no function of the user's own does, or all of them wait for RPC."""
    waiting_functions: tuple[RpcFunction, ...] = ()
    """Functions that wait for answers of RPC themselves, if all do that run; else ()."""


@cached_per_view
def find_rpc_wait(view: JobView) -> RpcWait | None:
    """Return who waits for answers of RPC, and what should give them, while the job stands still; None if
    nobody waits for RPC.

    A function that itself waits for RPC is left out: another one keeps it waiting, unless all of them wait.
    """
    if view.ending or not view.stalled:
        return None
    alive = tuple(m for m in view.alive if not m.launcher and not m.is_stopped)
    serving = any(_serves_calls(m) for m in alive)
    callers = tuple(m for m in alive if _awaits_rpc(m, serving) and is_settled_stack(m.stack))
    if not callers:
        return None
    functions = tuple(
        RpcFunction(m, stack) for m in alive if is_still(m) for stack in _standing_functions(m)
    )
    if _all_wait_for_rpc(alive, functions):
        return RpcWait(callers, (), functions)
    return RpcWait(callers, tuple(f for f in functions if not _is_rpc_wait(f.stack.frames)))


def _all_wait_for_rpc(alive: Sequence[Member], functions: Sequence[RpcFunction]) -> bool:
    """Return True if every function that runs for a call waits for RPC itself, and no member does anything
    else that could give an answer."""
    return (
        bool(functions)
        and all(_waits_for_answer(f.stack.frames) for f in functions)
        and all(
            is_still(m)
            and m.stack is not None
            and m.cpu - m.stack.polling_cores < MAX_CORES
            and not m.stack.moving_rpc_functions
            for m in alive
        )
    )


def _waits_for_answer(frames: tuple[Frame, ...]) -> bool:
    """Return True if a function that runs for a call waits for RPC, or for a future: which future it is, its
    source line does not show."""
    leaf = frames[0]
    return _is_rpc_wait(frames) or (leaf.is_user and _WAIT_CALL.search(leaf.text) is not None)


def waits_for_rpc_calls(view: JobView, member: Member) -> bool:
    """Return True if the member only serves RPC (its main thread is in `rpc.shutdown`, or it runs a function
    for a caller), and those who wait for others in this job wait for answers of RPC."""
    rpc_wait = find_rpc_wait(view)
    if rpc_wait is None or not _serves_calls(member):
        return False
    calling = {m.event_key for m in rpc_wait.callers}
    return all(
        m.event_key in calling or m.event_key == member.event_key or _serves_calls(m)
        for m in view.alive
        if not m.launcher
    )


def _serves_calls(member: Member) -> bool:
    stack = member.stack
    if stack is None:
        return False
    return bool(stack.rpc_functions) or any(
        f.function in ("shutdown", "_wait_all_workers") and _RPC_API.search(f.file)
        for f in stack.frames
    )


def _standing_functions(member: Member) -> tuple[Stack, ...]:
    stack = member.stack
    if stack is None:
        return ()
    return tuple(
        Stack(
            frames=f, taken_at=stack.taken_at, samples=stack.samples, span=stack.span, by=stack.by
        )
        for f in stack.rpc_functions
    )


def _awaits_rpc(member: Member, someone_serves: bool) -> bool:
    stack = member.stack
    if stack is None or not stack.frames or member.op is not None or _in_shutdown(stack):
        return False
    leaf = stack.frames[0]
    if _is_rpc_wait(stack.frames):
        return True
    return someone_serves and leaf.is_user and _WAIT_CALL.search(leaf.text) is not None


def _in_shutdown(stack: Stack) -> bool:
    return any(f.function == "shutdown" and _RPC_API.search(f.file) for f in stack.frames)


def _is_rpc_wait(frames: tuple[Frame, ...]) -> bool:
    """Return True if the innermost frame of the user's own code calls RPC, and waits for its answer."""
    for depth, frame in enumerate(frames):
        if frame.is_user:
            return depth == 0 and _RPC_CALL.search(frame.text) is not None
        if _RPC_FILE.search(frame.file):
            return classify_stack(Stack(frames=frames, taken_at=0.0)) is Spot.ANSWER
    return False
