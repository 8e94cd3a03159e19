"""In one snapshot of the stacks, all ranks wait in a collective, but not in the same one.

## Why it matters
A collective returns only when every rank of its group has entered it. Ranks in two different collectives wait
for each other for ever. The calls need not be in your own code: a model wrapped by DDP broadcasts its buffers
in each forward, SyncBatchNorm exchanges statistics, FSDP and ZeRO gather shards, trainers wait for each other
around checkpoints. The line in your code is then only where the model or the trainer was called.

## What to do
Compare the lines. Common causes: a validation with the wrapped model under `if rank == 0`, a collective under
a condition on the rank, a different number of batches. If the dumps were taken while the job moved, take them
again: only ranks that are still at the same place are stuck there.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.stacks.stack_collectives import (
    DifferentCollectives,
    StackCollective,
    find_different_collectives,
)
from allaboard.analysis.stacks.stack_groups import StackGroups
from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER, describe_processes
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Dumps, Evidence, Frame, Severity, Who
from allaboard.facts.samples import REDUCE, USER, sample_stack

MAX_SHOWN_SIDES = 3
"""Collectives that the summary names."""


def check(dumps: Dumps) -> Iterator[Claim]:
    groups = StackGroups()
    for number, stack in sorted(dumps.stacks.items()):
        groups.add(number, stack.frames)
    difference = find_different_collectives(groups)
    if difference is None:
        return
    numbers = [n for _, ranks in difference.sides for n in ranks]
    unranked = [n for n in numbers if n >= FIRST_UNRANKED_NUMBER]
    evidence = [
        Evidence(f"{describe_processes(ranks, dumps.unnamed)}: {_place(collective)}", "stacks")
        for collective, ranks in difference.sides[:MAX_SHOWN_SIDES]
    ]
    if unranked:
        evidence.append(
            Evidence("the dumps do not say which ranks these are, nor of which job", "stacks")
        )
    yield Claim(
        summary=_summarize(difference, dumps),
        who=tuple(dumps.unnamed.get(n) or Who(index=n, rank=n) for n in difference.outliers[:64]),
        evidence=tuple(evidence),
        fix=_next_step(difference),
        severity=Severity.WARNING,
        certainty=Certainty.UNKNOWN if unranked else Certainty.LIKELY,
    )


def _summarize(difference: DifferentCollectives, dumps: Dumps) -> str:
    parts = [
        f"{describe_processes(ranks, dumps.unnamed)} {'are' if len(ranks) > 1 else 'is'} in "
        f"{collective}{f' at {collective.user}' if collective.user is not None else ''}"
        for collective, ranks in difference.sides[:MAX_SHOWN_SIDES]
    ]
    count = len(difference.sides)
    more = f" and {count - MAX_SHOWN_SIDES} more" if count > MAX_SHOWN_SIDES else ""
    number = "two" if count == 2 else str(count)
    difference_text = (
        "calls from different lines" if difference.are_same_call else "different collectives"
    )
    return f"{', '.join(parts)}{more}: {number} {difference_text}"


def _place(collective: StackCollective) -> str:
    line = f" at {collective.user.file}:{collective.user.line}" if collective.user else ""
    called = ", which the framework calls by itself" if collective.own is not None else ""
    return f"{collective}{line}{called}"


def _next_step(difference: DifferentCollectives) -> str:
    lines = dict.fromkeys(
        f"{c.user.file}:{c.user.line}" for c, _ in difference.sides if c.user is not None
    )
    compare = f"compare {' with '.join(list(lines)[:MAX_SHOWN_SIDES])}" if len(lines) > 1 else ""
    # The rarer one is the mistake: its advice comes before that of what most ranks are in.
    own_collective = next(
        (
            c.own
            for c, ranks in difference.sides
            if c.own is not None and ranks[0] in difference.outliers
        ),
        next((c.own for c, _ in difference.sides if c.own is not None), None),
    )
    if own_collective is not None:
        user_frame = next(c.user for c, _ in difference.sides if c.own is own_collective)
        prefix = f"{user_frame.file}:{user_frame.line}: " if user_frame is not None else ""
        return f"{prefix}{own_collective.advice}" + (f"; {compare}" if compare else "")
    advice = "make all ranks call the same collectives in the same order"
    return f"{advice}: {compare}" if compare else advice


_C10D = "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
_DDP = "/v/lib/python3.11/site-packages/torch/nn/parallel/distributed.py"
_LOGGER = Frame("/v/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", 83, "wrapper")
_AUTOGRAD = Frame(
    "/v/lib/python3.11/site-packages/torch/autograd/graph.py", 829, "_engine_run_backward"
)
_LATER = Frame("/home/u/train.py", 47, "train")
_VALIDATE = Frame("/home/u/train.py", 20, "validate")
_IN_REDUCE, _IN_OWN_CODE = sample_stack(REDUCE, _LOGGER, USER), sample_stack(USER)
_IN_BARRIER = sample_stack(Frame(_C10D, 5356, "barrier"), _LOGGER, _LATER)
_IN_BUFFERS = sample_stack(
    Frame(_DDP, 2363, "_distributed_broadcast_coalesced"),
    Frame(_DDP, 2425, "_sync_buffers"),
    Frame(_DDP, 1886, "forward"),
    _VALIDATE,
)
_IN_BACKWARD = sample_stack(_AUTOGRAD, USER)
_RECEIVES = sample_stack(Frame(_C10D, 2500, "recv"), USER)
_PIDS = {FIRST_UNRANKED_NUMBER + n: Who(job="process", index=-1, pid=4242 + n) for n in range(2)}
RULE = Rule(
    reads=Dumps,
    check=check,
    fires_on={
        "one rank is in a barrier, the other in an all_reduce": (
            Dumps(stacks={0: _IN_BARRIER, 1: _IN_REDUCE}),
            "rank 0 is in barrier at train.py:47 in train, rank 1 is in all_reduce at train.py:41 in "
            "train: two different collectives",
        ),
        "one rank is in DDP's broadcast of buffers, and two are in a barrier": (
            Dumps(stacks={0: _IN_BUFFERS, 1: _IN_BARRIER, 2: _IN_BARRIER}),
            "rank 0 is in DDP's broadcast of buffers at train.py:20 in validate, ranks 1-2 are in barrier "
            "at train.py:47 in train: two different collectives",
        ),
        "one rank is in a backward, the other in a barrier": (
            Dumps(stacks={0: _IN_BACKWARD, 1: _IN_BARRIER}),
            "rank 0 is in backward at train.py:41 in train, rank 1 is in barrier at train.py:47 in train: "
            "two different collectives",
        ),
        "both ranks are in an all_reduce, called from different lines": (
            Dumps(stacks={0: _IN_REDUCE, 1: sample_stack(REDUCE, _LATER)}),
            "rank 0 is in all_reduce at train.py:41 in train, rank 1 is in all_reduce at train.py:47 in "
            "train: two calls from different lines",
        ),
        "dumps that do not show the ranks of their processes": (
            Dumps(stacks=dict(zip(_PIDS, (_IN_BARRIER, _IN_REDUCE), strict=True)), unnamed=_PIDS),
            "pid 4242 (rank unknown) is in barrier at train.py:47 in train, pid 4243 (rank unknown) is in "
            "all_reduce at train.py:41 in train: two different collectives",
        ),
    },
    silent_on={
        "all ranks are in the same collective": Dumps(stacks=dict.fromkeys(range(3), _IN_REDUCE)),
        "one rank is in its own code": Dumps(stacks={0: _IN_REDUCE, 1: _IN_OWN_CODE}),
        "barriers at two lines, as where one rank goes first": Dumps(
            stacks={0: _IN_BARRIER, 1: sample_stack(Frame(_C10D, 5356, "barrier"), USER)}
        ),
        "both ranks are in a backward, called from different lines": Dumps(
            stacks={0: _IN_BACKWARD, 1: sample_stack(_AUTOGRAD, _LATER)}
        ),
        "one rank waits for a message in `recv`": Dumps(stacks={0: _RECEIVES, 1: _IN_REDUCE}),
        "the dump of a single process": Dumps(stacks={0: _IN_BARRIER}),
    },
    unstaged="it is read after the fact: recordings are in tests/diagnosis/collectives",
)
