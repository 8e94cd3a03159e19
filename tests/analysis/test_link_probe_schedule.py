"""Beyond all pairs: every single fault that is tried is named as what it is, whatever the number of hosts."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from math import ceil, log2

import pytest

from allaboard.analysis.network.link_faults import (
    NO_CONNECTION_ANSWERS,
    LinkFault,
    find_link_faults,
)
from allaboard.analysis.roll_call.link_probe_schedule import (
    MAX_ALL_PAIRS_HOSTS,
    MAX_REVERSE_PROBES,
    probe_targets,
    reverse_probes,
)
from allaboard.facts import Answer, Link

SIZES = (65, 66, 100, 128, 129, 257, 1000, 4096)
Dead = Callable[[int, int], bool]


@cache
def link(source: int, target: int, works: bool) -> Link:
    answer = Answer.ABOARD if works else Answer.SILENT
    return Link(source=f"h{source}", target=f"h{target}", address=f"{target}:1", answer=answer)


def tried(hosts: int, dead: Dead) -> list[Link]:
    """What the hosts tell, both rounds, where ``dead(source, target)`` links do not work."""
    first = [link(i, j, not dead(i, j)) for i in range(hosts) for j in probe_targets(i, hosts)]
    wrong = [(k.source, k.target) for k in first if not k.works]
    again = reverse_probes(wrong, {(k.source, k.target) for k in first})
    assert all(len(others) <= MAX_REVERSE_PROBES for others in again.values())
    pairs = [(int(h[1:]), int(other[1:])) for h, others in again.items() for other in others]
    return first + [link(i, j, not dead(i, j)) for i, j in pairs]


def told(hosts: int, dead: Dead) -> LinkFault:
    """The one fault that is found."""
    (fault,) = find_link_faults(tried(hosts, dead), NO_CONNECTION_ANSWERS)
    return fault


@pytest.mark.parametrize("hosts", SIZES)
def test_a_host_tries_no_more_than_log2_of_them(hosts: int) -> None:
    most = max(len(probe_targets(i, hosts)) for i in range(hosts))
    assert most <= ceil(log2(hosts))
    assert hosts > MAX_ALL_PAIRS_HOSTS


@pytest.mark.parametrize("hosts", SIZES)
def test_a_single_bad_host_is_named(hosts: int) -> None:
    chance = random.Random(hosts)
    for _ in range(3 if hosts < 1000 else 1):
        bad = chance.randrange(hosts)
        cut = told(hosts, lambda a, b, bad=bad: bad in (a, b))
        assert (cut.host, cut.both_directions) == (f"h{bad}", True)
        deaf = told(hosts, lambda a, b, bad=bad: b == bad)
        assert (deaf.host, deaf.both_directions, deaf.only_outward_fails) == (
            f"h{bad}",
            False,
            False,
        )
        mute = told(hosts, lambda a, b, bad=bad: a == bad)
        assert (mute.host, mute.both_directions, mute.only_outward_fails) == (
            f"h{bad}",
            False,
            True,
        )


@pytest.mark.parametrize("hosts", SIZES)
def test_a_single_bad_link_is_named_with_its_direction(hosts: int) -> None:
    chance = random.Random(hosts)
    for _ in range(3 if hosts < 1000 else 1):
        one = chance.randrange(hosts)
        other = chance.choice(probe_targets(one, hosts))
        pair = {f"h{one}", f"h{other}"}
        both = told(hosts, lambda a, b, w={one, other}: {a, b} == w)
        assert (both.host, set(both.pair), both.both_directions) == ("", pair, True)
        way = told(hosts, lambda a, b, w=(one, other): (a, b) == w)
        assert (way.host, set(way.pair), way.both_directions, way.directions_tried) == (
            "",
            pair,
            False,
            2,
        )


@pytest.mark.parametrize("hosts", SIZES)
def test_two_parts_that_do_not_reach_each_other_are_one_fault(hosts: int) -> None:
    chance = random.Random(hosts)
    racks = {i for i in range(hosts) if i < hosts // 3}
    mixed = set(chance.sample(range(hosts), hosts // 2))
    for part in (racks, mixed):
        found = told(hosts, lambda a, b, part=part: (a in part) != (b in part))
        assert {frozenset(p) for p in found.partitions} == {
            frozenset(f"h{i}" for i in range(hosts) if (i in part) is inside)
            for inside in (True, False)
        }


def test_few_hosts_try_every_pair_both_ways() -> None:
    for hosts in (2, 3, 17, MAX_ALL_PAIRS_HOSTS):
        pairs = {(i, j) for i in range(hosts) for j in probe_targets(i, hosts)}
        assert len(pairs) == hosts * (hosts - 1)
