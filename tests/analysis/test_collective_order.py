"""Where the ranks of a group first differ, and who is to blame."""

from __future__ import annotations

import msgspec

from allaboard.analysis.collectives.collective_mismatch import (
    MismatchKind,
    mismatch_evidence,
    mismatch_kind,
)
from allaboard.analysis.collectives.collective_order import (
    diverged_groups,
    find_call_difference,
    find_call_differences,
    members_to_trace,
)
from allaboard.facts import Exit, JobView, Member
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature, stalled_job

SUM, CAST, OTHER = (
    sample_signature(),
    sample_signature("broadcast", root=0, line=50),
    sample_signature(dtype="int32"),
)


def untraced(member: Member) -> Member:
    return msgspec.structs.replace(member, traces=())


def unordered(member: Member, number: int) -> Member:
    state = msgspec.structs.replace(member.groups[0], unordered=number)
    return msgspec.structs.replace(member, groups=(state,))


def views(*members: Member) -> JobView:
    return sample_job(*members, launched=len(members))


def test_digests_that_agree_ask_for_nothing() -> None:
    view = views(
        member_with_calls(0, SUM, CAST),
        member_with_calls(1, SUM),
        member_with_calls(2, SUM, CAST, SUM),
    )
    assert (
        diverged_groups(view) == {}
        and members_to_trace(view) == []
        and find_call_differences(view) == ()
    )


def test_a_split_asks_for_the_last_calls_once() -> None:
    bad = (
        member_with_calls(0, SUM, CAST),
        member_with_calls(1, CAST, SUM),
        member_with_calls(2, SUM),
    )
    assert members_to_trace(views(*map(untraced, bad))) == [(("0", 1), (100, 101, 102))]
    assert members_to_trace(views(*bad)) == []


def test_the_first_difference_and_its_odd_one() -> None:
    view = views(
        member_with_calls(0, SUM, SUM, CAST),
        member_with_calls(1, SUM, OTHER, SUM),
        member_with_calls(2, SUM, SUM, SUM),
    )
    found = find_call_difference(view, ("0", 1))
    assert found is not None and found.number == 2
    assert [m.who.rank for m in found.outliers] == [1] and found.complete
    assert mismatch_kind(found) is MismatchKind.DTYPE
    assert mismatch_evidence(found, view)[0].observed.startswith(
        "rank 1: all_reduce(int32[4], sum)"
    )


def test_without_a_majority_all_are_named_when_nobody_is_on_the_way() -> None:
    members = (member_with_calls(0, SUM), member_with_calls(1, CAST), member_with_calls(2))
    early = find_call_difference(views(*members), ("0", 1))
    late = find_call_difference(stalled_job(*members), ("0", 1))
    assert early is not None and not early.complete
    assert late is not None and late.complete and len(late.outliers) == 2


def test_what_is_unordered_proves_nothing() -> None:
    bad = (
        member_with_calls(0, SUM, CAST),
        unordered(member_with_calls(1, SUM, SUM), 2),
        member_with_calls(2, SUM, CAST),
    )
    assert diverged_groups(views(*bad)) == {} and find_call_differences(views(*bad)) == ()
    before = (
        member_with_calls(0, SUM, CAST),
        unordered(member_with_calls(1, CAST, SUM), 2),
        member_with_calls(2, SUM, CAST),
    )
    assert [d.number for d in find_call_differences(views(*before))] == [1]


def test_a_rank_that_moves_on_alone_is_asked_when_it_gets_there() -> None:
    late = untraced(member_with_calls(2, SUM, CAST))
    view = views(member_with_calls(0, SUM, CAST), member_with_calls(1, SUM, SUM), late)
    assert members_to_trace(view) == [(("0", 1), (102,))]


def test_who_fell_is_compared_though_the_others_caught_it_and_went_on() -> None:
    dead = msgspec.structs.replace(
        member_with_calls(1, SUM, CAST), exit=Exit(ended_at=95.0, signal=6)
    )
    far = (SUM, SUM, *[SUM] * 20)  # past what they show of call 2 by themselves
    others = (unordered(member_with_calls(0, *far), 3), unordered(member_with_calls(2, *far), 3))
    shown = [
        msgspec.structs.replace(
            m, groups=tuple(msgspec.structs.replace(s, marks=s.marks[:4]) for s in m.groups)
        )
        for m in others
    ]
    view = views(shown[0], dead, shown[1])
    assert diverged_groups(view) == {}
    assert members_to_trace(views(*map(untraced, (shown[0], dead, shown[1])))) == [
        (("0", 1), (100, 101, 102))
    ]
    assert members_to_trace(view) == [] and [d.number for d in find_call_differences(view)] == [2]


def test_a_stalled_rank_that_is_far_ahead_is_traced_once() -> None:
    """A rank that starts calls without waiting may be further ahead than digests are reported."""
    ahead = member_with_calls(0, SUM, CAST, CAST, CAST, CAST, CAST)
    behind = [member_with_calls(r, SUM, SUM) for r in (1, 2)]
    (state,) = ahead.groups
    ahead = msgspec.structs.replace(
        ahead, groups=(msgspec.structs.replace(state, marks=state.marks[:4]),)
    )
    members = (ahead, *behind)
    assert members_to_trace(views(*map(untraced, members))) == []  # it moves
    stalled = stalled_job(*map(untraced, members))
    assert members_to_trace(stalled) == [(("0", 1), (100, 101, 102))]
    traced = stalled_job(*members)
    assert members_to_trace(traced) == []
    (difference,) = find_call_differences(traced)
    assert difference.number == 2 and [m.who.rank for m in difference.outliers] == [0]
    near = [member_with_calls(0, SUM, CAST), member_with_calls(1, SUM), member_with_calls(2, SUM)]
    assert (
        members_to_trace(stalled_job(*map(untraced, near))) == []
    )  # their digests can be compared
