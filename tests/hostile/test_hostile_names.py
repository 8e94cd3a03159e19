"""Every name that comes from elsewhere stands in a command as one word of the shell, whatever it holds.

All rules are run on their own examples, with the names in them replaced by hostile ones.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import msgspec
import pytest

from allaboard.facts import Claim, JobView
from allaboard.facts.samples import sample_job, sample_member
from allaboard.rules.engine.catalogue import RuleEntry, load_catalogue
from allaboard.rules.engine.evaluate import run_rules
from allaboard.rules.engine.shell_words import quote_foreign_names, unsafe_names

EVIL = "vm; touch pwned|sh #"
"""A name that runs a command where it is pasted without quotes."""
QUOTED = shlex.quote(EVIL)
NAME_FIELDS = ("host", "peer", "source", "target")
"""Fields that hold a name, or an address, which another host says of itself."""
ADDRESS_FIELDS = ("place", "address", "met")


def poison(value: Any, name: str = "") -> Any:
    """Return the same facts with every name in them hostile."""
    if isinstance(value, msgspec.Struct):
        changes = {}
        for field in value.__struct_fields__:
            old = getattr(value, field)
            new = poison(old, field)
            if new is not old:
                changes[field] = new
        return msgspec.structs.replace(value, **changes) if changes else value
    if isinstance(value, tuple):
        new_items = tuple(poison(v, name) for v in value)
        return (
            new_items if any(a is not b for a, b in zip(value, new_items, strict=True)) else value
        )
    if isinstance(value, str) and value and name in NAME_FIELDS:
        return EVIL
    if isinstance(value, str) and name in ADDRESS_FIELDS and re.search(r":\d+$", value):
        scheme, slashes, rest = value.rpartition("//")
        return scheme + slashes + EVIL + ":" + rest.rpartition(":")[2]
    return value


JOB_RULES = [e for e in load_catalogue().entries if e.rule.reads is JobView]


def test_the_examples_have_commands_with_names_in_them() -> None:
    fixes = [
        claim.fix
        for entry in JOB_RULES
        for view, _ in entry.rule.fires_on.values()
        for _, claim in run_rules(poison(view), (entry,))
    ]
    assert len([fix for fix in fixes if QUOTED in fix]) > 30


@pytest.mark.parametrize("name", ["a b", "it's", "$(id)", "h1\n  do   rm -rf x", "`id`", "a'b\"c"])
def test_any_name_is_one_word(name: str) -> None:
    view = poison_job(name)
    claim = Claim(summary="x", fix=f"getent hosts {name}", evidence=())
    quoted = quote_foreign_names(claim, unsafe_names(view))
    assert shlex.split(quoted.fix) == ["getent", "hosts", name.replace("\n", "?")]


def test_an_ordinary_name_stays_as_it_is() -> None:
    for name in ("node-1.example.org", "10.0.0.1", "[fe80::1]", "gpu_07"):
        assert not unsafe_names(poison_job(name))


def poison_job(name: str) -> JobView:
    member = sample_member(0)
    who = msgspec.structs.replace(member.who, host=name)
    return sample_job(msgspec.structs.replace(member, who=who))


@pytest.mark.parametrize("entry", JOB_RULES, ids=lambda e: e.code)
def test_no_name_leaves_its_word_in_a_command(entry: RuleEntry) -> None:
    for view, _ in entry.rule.fires_on.values():
        for _, claim in run_rules(poison(view), (entry,)):
            rest = claim.fix.replace(QUOTED, "")
            # An address is quoted as a whole.
            rest = re.sub(r"'[^']*" + re.escape(EVIL) + r"[^']*'", "", rest)
            assert "pwned" not in rest, claim.fix
