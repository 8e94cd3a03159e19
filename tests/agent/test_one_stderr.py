"""Agents that write to one stderr tell each finding once, those with streams of their own each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from allaboard.agent.host_dedup import MAX_REMEMBERED_FINDINGS, HostDedup
from allaboard.facts import Certainty, Finding, Severity, Stage, Who


def finding(number: int, at: str = "2026-01-01T00:00:00.000Z") -> Finding:
    return Finding(
        rule="HANG001",
        name="stopped",
        stage=Stage.RUNTIME,
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        summary=f"{os.getpid()}: {number}",
        who=(Who(index=1, rank=1, host="a", pid=7),),
        evidence=(),
        fix="kill -CONT 7",
        at=at,
    )


@contextmanager
def pipe() -> Iterator[int]:
    read, write = os.pipe()
    try:
        yield write
    finally:
        os.close(read)
        os.close(write)


@contextmanager
def tellers(*fds: int) -> Iterator[list[HostDedup]]:
    made = [HostDedup(fd) for fd in fds]
    yield made
    for one in made:
        one.close()


def test_one_of_several_tells_it() -> None:
    with pipe() as fd:
        same = os.dup(fd)
        with tellers(fd, same) as (one, other):
            assert [t.is_first(finding(1)) for t in (one, other)] == [True, False]
            assert [t.is_first(finding(2)) for t in (other, one)] == [True, False]
            again = finding(1, at="2026-01-01T00:09:00.000Z")
            assert [t.is_first(again) for t in (other, one)] == [True, False]
        os.close(same)


def test_who_has_a_stream_of_its_own_tells_it_there() -> None:
    with pipe() as fd, pipe() as own, tellers(fd, own) as both:
        assert [t.is_first(finding(1)) for t in both] == [True, True]


def test_where_it_cannot_be_known_it_is_told() -> None:
    with pipe() as fd, tellers(fd, fd) as (many, other):
        assert all(many.is_first(finding(n)) for n in range(MAX_REMEMBERED_FINDINGS + 5))
        assert other.is_first(finding(MAX_REMEMBERED_FINDINGS + 1)) and not other.is_first(
            finding(MAX_REMEMBERED_FINDINGS - 1)
        )
    with tellers(-1) as (nowhere,):
        assert nowhere.is_first(finding(1)) and nowhere.is_first(finding(1))
