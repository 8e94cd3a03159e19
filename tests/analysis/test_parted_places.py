"""Where ranks took different ways before their collectives differed."""

from __future__ import annotations

from allaboard.analysis.collectives.collective_order import find_call_difference
from allaboard.analysis.collectives.parted_places import PartedPlaces, find_parted_places
from allaboard.facts import Signature
from allaboard.facts.samples import member_with_calls, sample_job, sample_signature

GATHER = sample_signature("all_gather", line=16)
SCATTER = sample_signature("reduce_scatter", line=16)
VALIDATES = sample_signature("all_gather", line=14)
STEP = (GATHER, GATHER, GATHER, SCATTER, SCATTER)
SETUP = sample_signature("broadcast", line=3), sample_signature("broadcast", line=5)


def parted(one: tuple[Signature, ...], *others: tuple[Signature, ...]) -> PartedPlaces | None:
    view = sample_job(*(member_with_calls(r, *c) for r, c in enumerate((one, *others))))
    difference = find_call_difference(view, ("0", 1))
    assert difference is not None
    return find_parted_places(difference)


def lines(found: PartedPlaces | None) -> tuple[int, int | None, int | None] | None:
    if found is None:
        return None
    sites = (found.outlier_call.site, found.majority_call.site)
    return found.number, *(s.line if s is not None else None for s in sites)


def test_a_rank_that_validates_alone_parted_at_its_validation() -> None:
    validates = (*STEP, VALIDATES, VALIDATES, GATHER, GATHER)
    assert lines(parted(validates, (*STEP, *STEP), (*STEP, *STEP))) == (6, 14, 16)


def test_a_rank_that_skips_the_validation_parted_where_the_others_validate() -> None:
    validate = (*STEP, VALIDATES, VALIDATES, *STEP)
    assert lines(parted((*STEP, *STEP), validate, validate)) == (6, 16, 14)


def test_a_rank_in_the_midst_of_its_validation() -> None:
    longer = (*STEP, *(VALIDATES,) * 4)
    assert lines(parted(longer, (*STEP, *STEP), (*STEP, *STEP))) == (6, 14, 16)


def test_ranks_that_differ_at_once_parted_there() -> None:
    barrier = sample_signature("barrier", line=20, dtype="")
    assert parted((*STEP, barrier), (*STEP, GATHER), (*STEP, GATHER)) is None


def test_lines_that_differ_by_right_are_no_parting() -> None:
    barrier = sample_signature("barrier", line=20, dtype="")
    sent, received = SETUP
    one, other = (sent, *STEP, barrier), (received, *STEP, GATHER)
    assert parted(one, other, other) is None
    in_every_step = (sent, *STEP, sent, *STEP, barrier), (received, *STEP, received, *STEP, GATHER)
    assert parted(in_every_step[0], in_every_step[1], in_every_step[1]) is None


def test_others_of_several_lines_show_nothing() -> None:
    validates = (*STEP, VALIDATES, VALIDATES, GATHER, GATHER)
    elsewhere = sample_signature("all_gather", line=30)
    third = (*STEP, elsewhere, elsewhere, elsewhere, SCATTER)
    assert parted(validates, (*STEP, *STEP), third) is None
