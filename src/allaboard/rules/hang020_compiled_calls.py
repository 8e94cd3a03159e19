"""According to PyTorch's Flight Recorder, the ranks of a compiled job called different collectives.

## Why it matters
A graph of `torch.compile` calls its collectives in C++, where only PyTorch itself counts them. All ranks wait
in an operation of their graph, and their stacks do not show what they wait for. But PyTorch numbers every
collective of a group, and its Flight Recorder keeps the last of them. At this number, one rank called
something else.

## What to do
Compare the lines that the finding lists. Look for a graph that was recompiled for another shape on one rank,
a branch that only some ranks take, or one call more or less before this one. Every rank of a group must call
the same collectives in the same order, with tensors of the same shape and type.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.collectives.collective_order import find_call_differences
from allaboard.analysis.collectives.flight_record_diff import describe_recorded, recorded_location
from allaboard.analysis.collectives.live_flight_record import live_record_mismatches
from allaboard.analysis.stalls.stall import find_stall, is_settled_stack
from allaboard.analysis.stalls.stalled_members import stalled_since
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, Frame, JobView, Member
from allaboard.facts.outcome import Retry
from allaboard.facts.rank_sets import name_ranks
from allaboard.facts.samples import (
    REDUCE,
    USER,
    recorded_collective,
    sample_member,
    sample_stack,
    stalled_job,
)

MAX_SIDES = 3
"""Most different calls that are shown."""


def check(view: JobView) -> Iterator[Claim]:
    stall = find_stall(view)
    if stall is None or len(stall.waiting) < 2 or find_call_differences(view):
        return
    if not all(is_settled_stack(m.stack) for m in stall.waiting):
        return
    waiting_ranks = {m.who.rank for m in stall.waiting}
    for mismatch in live_record_mismatches(view):
        if not waiting_ranks.issuperset(rank for ranks, _ in mismatch.sides for rank in ranks):
            continue  # a rank continued or is elsewhere, which other rules report
        sides = [
            f"{name_ranks(ranks)}: {describe_recorded(entry)}"
            for ranks, entry in mismatch.sides[:MAX_SIDES]
        ]
        yield Claim(
            summary=f"ranks called different operations as collective {mismatch.number} of group "
            f"{mismatch.group}: {'; '.join(sides)}",
            who=tuple(m.who for m in view.members if m.who.rank in mismatch.outliers),
            evidence=tuple(
                Evidence(
                    f"{name_ranks(ranks)}: {describe_recorded(entry)}{recorded_location(entry)}",
                    "Flight Recorder",
                )
                for ranks, entry in mismatch.sides[:MAX_SIDES]
            ),
            fix="look at these lines for what only some ranks call, or call with another shape: "
            "every rank of a group must call the same collectives in the same order",
            certainty=Certainty.LIKELY,
            since=stalled_since(view),
        )


_OPERATION = Frame("/v/site-packages/torch/_ops.py", 882, "redispatch")
_GRAPH = Frame("<eval_with_key>.3", 13, "forward")


def _in_compiled_graph(rank: int, op: str = "all_reduce", size: int = 4, calls: int = 2) -> Member:
    """Return a member in an operation of its compiled graph, after ``calls`` collectives, the last of which
    was ``op``."""
    earlier_calls = [recorded_collective(rank, n) for n in range(1, calls)]
    return sample_member(
        rank,
        stack=sample_stack(_OPERATION, _GRAPH, USER),
        recorded=(*earlier_calls, recorded_collective(rank, calls, op, size)),
    )


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("stack",),
    fires_on={
        "the compiled graph of one rank calls all_gather, the others all_reduce": (
            stalled_job(
                _in_compiled_graph(0), _in_compiled_graph(1, "all_gather", 3), _in_compiled_graph(2)
            ),
            "ranks called different operations as collective 2 of group 0 default_pg: ranks 0 and 2: "
            "all_reduce([4] Float); rank 1: all_gather([3] Float)",
        ),
        "the compiled graph of one rank calls all_reduce with another shape": (
            stalled_job(
                _in_compiled_graph(0), _in_compiled_graph(1, size=6), _in_compiled_graph(2)
            ),
            "ranks called different operations as collective 2 of group 0 default_pg: ranks 0 and 2: "
            "all_reduce([4] Float); rank 1: all_reduce([6] Float)",
        ),
    },
    silent_on={
        "the compiled graphs of all ranks call the same collectives": stalled_job(
            _in_compiled_graph(0), _in_compiled_graph(1), _in_compiled_graph(2)
        ),
        "one rank has called one collective more than the others": stalled_job(
            _in_compiled_graph(0), _in_compiled_graph(1, calls=3), _in_compiled_graph(2)
        ),
        "the Flight Recorder has recorded nothing": stalled_job(
            *(sample_member(r, stack=sample_stack(_OPERATION, _GRAPH, USER)) for r in range(3))
        ),
        "one rank stands in its own code, outside the compiled graph": stalled_job(
            _in_compiled_graph(0),
            _in_compiled_graph(1),
            sample_member(
                2, stack=sample_stack(USER), recorded=(recorded_collective(2, 2, "gather"),)
            ),
        ),
        "the recorded collectives differ, but the ranks still compute": stalled_job(
            *(
                sample_member(
                    r,
                    stack=sample_stack(_OPERATION, _GRAPH, USER),
                    recorded=(recorded_collective(r, 2, op),),
                    cpu=0.9,
                )
                for r, op in enumerate(("all_reduce", "broadcast"))
            )
        ),
        "a gather to which each rank passes another size, which is allowed": stalled_job(
            _in_compiled_graph(0, "gather", 4),
            _in_compiled_graph(1, "gather", 5),
            _in_compiled_graph(2, "gather", 6),
        ),
        "all ranks wait in an eager all_reduce, and have recorded the same collective": stalled_job(
            *(
                sample_member(
                    r, stack=sample_stack(REDUCE, USER), recorded=(recorded_collective(r, 2),)
                )
                for r in range(3)
            )
        ),
    },
    retry=Retry.NEVER,
    passes=True,
    drill=("compiled-order",),
)
