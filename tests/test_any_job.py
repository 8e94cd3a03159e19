"""No rule fails on any job, however its members' states are mixed: what can be known of a process comes in
any order, and any part of it may be missing.

The material is what the rules' own examples are made of: members of all of them in one job, with single
fields taken from others or emptied.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from typing import Any

import msgspec
import pytest

from allaboard.facts import JobView, Member
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules

ENTRIES = load_catalogue().entries
VIEWS = [
    view
    for entry in ENTRIES
    for view in (*(v for v, _ in entry.rule.fires_on.values()), *entry.rule.silent_on.values())
    if isinstance(view, JobView)
]
JOBS = 100
"""Jobs for each seed."""


@cache  # it evaluates all annotations anew, for each of thousands of members
def fields(kind: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    return list(msgspec.structs.fields(kind))


def values(things: list[Any]) -> dict[str, list[Any]]:
    """What each field was in any of them, its default with it."""
    found = defaultdict(list)
    for thing in things:
        for field in fields(type(thing)):
            found[field.name].append(getattr(thing, field.name))
    for field in fields(type(things[0])):
        if field.default is not msgspec.NODEFAULT:
            found[field.name] += [field.default] * 50
    return found


MEMBERS = [m for view in VIEWS for m in view.members]
OF_MEMBER, OF_VIEW = values(MEMBERS), values(VIEWS)


def mixed(draw: random.Random, one: Any, others: dict[str, list[Any]], many: int) -> Any:
    names = draw.sample([n for n in others if n not in ("who", "members", "now")], many)
    return msgspec.structs.replace(one, **{name: draw.choice(others[name]) for name in names})


def any_job(draw: random.Random) -> JobView:
    """A job of some members of anybody's examples, each with a few fields of others."""
    members: list[Member] = []
    for index, one in enumerate(draw.choices(MEMBERS, k=draw.randint(0, 5))):
        rank = draw.choice([index, index, index, -1, 0])
        who = msgspec.structs.replace(one.who, index=index, rank=rank, pid=100 + index)
        one = msgspec.structs.replace(one, who=who, worker=index)
        members.append(mixed(draw, one, OF_MEMBER, draw.randint(0, 6)))
    view = draw.choice(VIEWS)
    if draw.random() < 0.7:
        view = msgspec.structs.replace(view, members=tuple(members))
    return mixed(draw, view, OF_VIEW, draw.randint(0, 3))


@pytest.mark.parametrize("seed", range(40))
def test_no_rule_fails(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(JOBS):
        view = any_job(draw)
        for entry, claim in run_rules(view, ENTRIES):
            assert "itself failed" not in claim.summary, (entry.code, claim, view)
            assert claim.summary and claim.fix, (entry.code, claim)
