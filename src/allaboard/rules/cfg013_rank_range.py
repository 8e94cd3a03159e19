"""A rank is negative, or not below the world size.

## Why it matters
Ranks go from 0 to WORLD_SIZE - 1. PyTorch refuses a larger one in this process (`rank < size`), and the
others, rank 0 among them, wait for the rank that no process has. A world size of 0 or below is a
script's default that was never replaced.

## What to do
Number the processes from 0. If there really is one more process, WORLD_SIZE is too small on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, PartialSpec, Value, Who, sample_config_facts

_RANK_AND_SIZE_FIELDS = (("rank", "world_size"), ("node_rank", "nnodes"))


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for part in facts.parts:
        for rank_field, size_field in _RANK_AND_SIZE_FIELDS:
            yield from _check_pair(part, rank_field, size_field)


def _check_pair(part: PartialSpec, rank_field: str, size_field: str) -> Iterator[Claim]:
    value, total = part.values.get(rank_field), part.values.get(size_field)
    number = value.integer if value is not None else None
    # torchrun's --nnodes may be a range: its upper end counts.
    text = total.text.rpartition(":")[2] if total is not None else ""
    size = Value(text).integer if total is not None else None
    if total is not None and size is not None and size < 1:
        yield Claim(
            summary=f"{_name(total, size_field)} is {size}; it must be at least 1",
            who=(),
            evidence=(total.evidence,),
            fix=total.origin.assignment_of(str(max(number or 0, 0) + 1)),
            where=total.origin.editor_place,
        )
        return
    if value is None or number is None or (size is None and number >= 0):
        return
    if size is not None and 0 <= number < size:
        return
    bound = f"0 to {size - 1}" if size is not None else "0 or more"
    size_note = f" with {_name(total, size_field)}={total.text}" if total is not None else ""
    members = (Who(index=number, rank=number),) if rank_field == "rank" and number >= 0 else ()
    yield Claim(
        summary=f"{_name(value, rank_field)} is {number}{size_note}: it must be {bound}",
        who=members,
        evidence=(value.evidence, *((total.evidence,) if total is not None else ())),
        fix=value.origin.assignment_of(str(size - 1 if size is not None and number > 0 else 0)),
        where=value.origin.editor_place,
    )


def _name(value: Value | None, field: str) -> str:
    return (value.origin.name if value is not None else "") or field


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "ranks are counted from 1: rank 2 in a world of 2": (
            sample_config_facts(rank="2", world_size="2"),
            "RANK is 2 with WORLD_SIZE=2: it must be 0 to 1",
        ),
        "a negative rank": (
            sample_config_facts(rank="-1", world_size="2"),
            "RANK is -1 with WORLD_SIZE=2: it must be 0 to 1",
        ),
        "a world size of 0": (
            sample_config_facts(rank="0", world_size="0"),
            "WORLD_SIZE is 0; it must be at least 1",
        ),
    },
    silent_on={
        "the last rank, 1 in a world of 2": sample_config_facts(rank="1", world_size="2"),
        "node rank 3 where torchrun takes 1 to 4 nodes": sample_config_facts(
            node_rank="3", nnodes="1:4"
        ),
    },
)
