"""Collectives that wait on a GPU, while the program that called them stands at a later line.

NCCL's collectives only put a kernel on the GPU's queue and return. A rank whose peers do not come is in no
call, then: it stands at the first line that needs a result of the GPU (``loss.item()``), and polls for it
with all of a core. Measured with PyTorch 2.11 and NCCL 2.28.9 on an H200: no call is open, state R, 200 % of
a core (the main thread, and NCCL's own). PyTorch's Flight Recorder tells what is still on the queue. Without
it, a line that reads a value tells that the rank waits for its GPU, but not for what.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Declared, GroupState, Member, Op, Stack
from allaboard.facts.collective_calls import GroupKey
from allaboard.facts.usage import DeviceMemory
from allaboard.late_pattern import compile_late

BLOCKING_BACKENDS = ("gloo", "mpi", "ucc")
"""Backends whose calls return when they are over: who has left one waits for nobody in it."""
CUDA_NOTE = "cuda"
"""Note of a program whose PyTorch was built for GPUs; without one, the default backend is gloo."""
_VALUE_READ = compile_late(
    r"\.(?:item|tolist|cpu|numpy|synchronize)\(|\bsynchronize\(\)|\.to\(\s*(?:device\s*=\s*)?['\"]cpu['\"]"
    r"|\b(?:float|int|bool|print)\(\s*[\w.\[\]]+\s*\)"
)
"""Words of a line that needs a result of the GPU. On a CPU's tensor each of them takes microseconds."""
_WAITING_FUNCTIONS = ("synchronize", "wait")
"""Functions of torch.cuda that wait for a queue."""
_ELSEWHERE = (Spot.USER, Spot.STEP)
"""Where a rank may stand that waits for its GPU; every other place tells what it waits for."""


def is_waiting_unseen(declared: Declared | None, memory: DeviceMemory | None) -> bool:
    """Return True if the time within calls tells nothing of the waiting, which happens on the GPU: by NCCL,
    which is also the default of a program that has memory on a GPU."""
    if declared is None or declared.framework != "torch":
        return False
    return "nccl" in declared.backend or (not declared.backend and memory is not None)


def with_queued_calls(members: Sequence[Member]) -> tuple[Member, ...]:
    """Return the members; one that waits for a call on its GPU's queue is in that call (`Op.queued`).

    It is so only if a member of the group has yet to make the call: without one, the GPU may be computing.
    """
    candidates = {m.event_key: g for m in members if (g := queued_group(m)) is not None}
    if not candidates:
        return tuple(members)
    numbers: dict[GroupKey, list[int]] = defaultdict(list)
    for member in members:
        for state in member.groups:
            numbers[state.key].append(state.number)
    return tuple(
        _in_queued_call(m, group)
        if (group := candidates.get(m.event_key)) is not None
        and (min(numbers[group.key]) < group.number or len(numbers[group.key]) < group.size)
        else m
        for m in members
    )


def _in_queued_call(member: Member, group: GroupState) -> Member:
    name = group.last_call.op if group.last_call is not None else "a collective"
    op = Op(name, member.ops, group.since, group=group.name, position=group.number, queued=True)
    return msgspec.structs.replace(member, op=op)


def queued_group(member: Member) -> GroupState | None:
    """Return the group of the call that the member has on its GPU's queue and waits for; None if it is in a
    call, waits for something else, or its recorder says that the queue is done."""
    if member.op is not None or member.is_stopped or not member.groups:
        return None
    stack, declared = member.stack, member.declared
    if declared is None or declared.framework != "torch" or declared.backend in BLOCKING_BACKENDS:
        return None
    if stack is None or stack.moving or classify_stack(stack) not in _ELSEWHERE:
        return None
    groups: Iterable[GroupState] = member.groups
    if any(r.is_of_nccl for r in member.recorded):
        queued = next((r for r in member.recorded if r.is_queued), None)
        if queued is None:
            return None
        name = queued.group.partition(" ")[0]
        groups = [g for g in member.groups if g.name == name] or groups
    elif not reads_device_value(stack) or not (declared.backend or CUDA_NOTE in member.notes):
        return None
    return max(groups, key=lambda g: g.since)


def reads_device_value(stack: Stack | None) -> bool:
    """Return True if the innermost line needs a result of a GPU, and so waits until its queue is done."""
    if stack is None or not stack.frames:
        return False
    leaf = stack.frames[0]
    if "/torch/cuda/" in leaf.file:
        return leaf.function in _WAITING_FUNCTIONS
    return leaf.is_user and _VALUE_READ.search(leaf.text) is not None
