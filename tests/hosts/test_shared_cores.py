"""Which processes share cores."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.hosts import shared_cores
from allaboard.hosts.shared_cores import SHARED, CpuRoom, shared_core_counts

LOW, HIGH, MIDDLE = frozenset({0, 1}), frozenset({2, 3}), frozenset({1, 2})
ONE, OTHER = Path("/pods/one"), Path("/pods/other")


def test_sets_of_cores_that_overlap_are_one() -> None:
    assert shared_core_counts({7: CpuRoom(LOW), 8: CpuRoom(LOW)}) == {7: (2, 7), 8: (2, 7)}
    assert shared_core_counts({7: CpuRoom(LOW), 8: CpuRoom(HIGH)}) == {7: (2, 7), 8: (2, 8)}
    both = {7: CpuRoom(LOW), 8: CpuRoom(HIGH), 9: CpuRoom(MIDDLE)}
    assert shared_core_counts(both) == {7: (4, 7), 8: (4, 7), 9: (4, 7)}
    assert shared_core_counts({}) == {}


def test_a_quota_is_shared_by_those_in_its_group() -> None:
    cores = frozenset(range(64))
    same = {7: CpuRoom(cores, ONE, 4.0), 8: CpuRoom(cores, ONE, 4.0)}
    assert shared_core_counts(same) == {7: (4, 7), 8: (4, 7)}
    each = {7: CpuRoom(cores, ONE, 4.0), 8: CpuRoom(cores, OTHER, 3.0)}
    assert shared_core_counts(each) == {7: (7, 7), 8: (7, 7)}
    one = {7: CpuRoom(cores, ONE, 4.0), 8: CpuRoom(cores)}
    assert shared_core_counts(one) == {7: (64, 7), 8: (64, 7)}
    assert shared_core_counts({7: CpuRoom(LOW, ONE, 4.0)}) == {7: (2, 7)}


def test_of_this_process() -> None:
    me = os.getpid()
    (found,) = shared_cores.read_shared_cores([me, 2**22 + 1])
    assert (found.name, found.limit, found.pid) == (SHARED, me, me)
    assert 0 < found.value <= len(os.sched_getaffinity(0))
