"""What is advised where all are inside the framework's init: it depends on what lies between them."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.facts import JobView, Member, Phase
from allaboard.facts.samples import sample_declaration, sample_job, sample_member
from allaboard.rules.engine.catalogue import load_catalogue


@pytest.mark.parametrize(
    ("hosts", "said", "not_said"),
    [(("a", "a"), "ip link show lo", "every host"), (("a", "b"), "every host", "loopback")],
)
def test_the_advice_fits_where_they_are(hosts: tuple[str, ...], said: str, not_said: str) -> None:
    inside = [
        sample_member(r, declared=sample_declaration(r, 2), phase=Phase.JOINING, phase_since=60.0)
        for r in range(2)
    ]
    placed = [
        msgspec.structs.replace(m, who=msgspec.structs.replace(m.who, host=h))
        for m, h in zip(inside, hosts, strict=True)
    ]
    view: JobView = sample_job(*placed, launched=2)
    rule = next(e.rule for e in load_catalogue().entries if e.code == "JOIN004")
    (claim,) = rule.check(view)
    assert said in claim.fix and not_said not in claim.fix


def second(rank: int, place: str = "tcp://127.0.0.1:20000", again: bool = True) -> Member:
    told = sample_declaration(rank, place=place, again=again)
    return sample_member(rank, phase=Phase.JOINING, phase_since=60.0, round=2, declared=told)


@pytest.mark.parametrize(
    ("place", "again"), [("tcp://127.0.0.1:20001", False), ("store", True), ("file:///x", True)]
)
def test_who_joins_again_elsewhere_is_told_of_the_network(place: str, again: bool) -> None:
    rule = next(e.rule for e in load_catalogue().entries if e.code == "JOIN004")
    (claim,) = rule.check(sample_job(*(second(r, place, again) for r in range(3))))
    assert "its own port" not in claim.fix and "loopback" in claim.fix


def test_who_joins_again_in_one_process_is_told_of_the_store_of_before() -> None:
    inside = [second(r) for r in range(3)]
    rule = next(e.rule for e in load_catalogue().entries if e.code == "JOIN004")
    (claim,) = rule.check(sample_job(*inside))
    assert "its own port" in claim.fix and "loopback" not in claim.fix
    assert "init number 2 of this process" in [e.observed for e in claim.evidence]
