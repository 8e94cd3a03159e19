"""Two worlds under one command have groups of one name."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.collective_order import find_call_differences
from allaboard.coordinator.group_disambiguation import (
    group_name_in_process,
    separate_same_named_groups,
)
from allaboard.facts import Exit, Member
from allaboard.facts.samples import (
    member_with_calls,
    sample_declaration,
    sample_job,
    sample_signature,
)

ONE, OTHER = "tcp://127.0.0.1:20000", "tcp://127.0.0.1:30000"
REDUCES, SENDS = sample_signature(), sample_signature("broadcast", root=0)


def of(worker: int, rank: int, place: str, *calls: object) -> Member:
    one = member_with_calls(rank, *calls, size=2)  # type: ignore[arg-type]
    return msgspec.structs.replace(
        one, worker=worker, key=worker + 1, declared=sample_declaration(rank, 2, place=place)
    )


def test_the_members_of_a_job_are_as_they_are() -> None:
    members = tuple(member_with_calls(r, REDUCES) for r in range(3))
    assert separate_same_named_groups(members) is members


def test_two_worlds_are_not_compared() -> None:
    members = (of(0, 0, ONE, REDUCES), of(1, 1, ONE, REDUCES),
               of(2, 0, OTHER, SENDS), of(3, 1, OTHER, SENDS))  # fmt: skip
    assert find_call_differences(sample_job(*members))
    told = separate_same_named_groups(members)
    assert not find_call_differences(sample_job(*told))
    assert {group_name_in_process(s.name) for m in told for s in m.groups} == {"0"}
    assert len({s.name for m in told for s in m.groups}) == 2


def test_within_one_of_two_worlds_ranks_are_compared() -> None:
    members = (of(0, 0, ONE, REDUCES), of(1, 1, ONE, SENDS),
               of(2, 0, OTHER, SENDS), of(3, 1, OTHER, SENDS))  # fmt: skip
    (found,) = find_call_differences(sample_job(*separate_same_named_groups(members)))
    assert {m.worker for m, _ in found.calls} == {0, 1}


def test_worlds_that_nothing_tells_apart_are_not_compared() -> None:
    members = (of(0, 0, ONE, REDUCES), of(1, 1, ONE, REDUCES), of(2, 0, ONE, SENDS))
    assert not find_call_differences(sample_job(*separate_same_named_groups(members)))


def test_who_was_started_again_takes_the_place_of_who_ended() -> None:
    before = [
        msgspec.structs.replace(of(r, r, ONE, REDUCES, SENDS), exit=Exit(ended_at=80.0, code=1))
        for r in (0, 1)
    ]
    now = [of(2 + r, r, ONE, REDUCES, *([REDUCES] if r else [SENDS])) for r in (0, 1)]
    (found,) = find_call_differences(sample_job(*separate_same_named_groups((*before, *now))))
    assert found.number == 2 and {m.worker for m, _ in found.calls} == {2, 3}


def test_groups_of_one_rank_are_compared_with_nobody() -> None:
    alone = (member_with_calls(0, REDUCES, size=1), member_with_calls(1, SENDS, size=1))
    assert not find_call_differences(sample_job(*alone))
