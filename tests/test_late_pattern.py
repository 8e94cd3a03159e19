"""Patterns that are compiled late behave as those that are compiled at once."""

from __future__ import annotations

import copy
import gc
import re

import pytest

from allaboard.late_pattern import LatePattern, compile_late
from allaboard.rules.engine.catalogue import load_catalogue


def test_a_late_pattern_finds_what_a_compiled_one_finds() -> None:
    late, compiled = compile_late(r"(?P<n>\d+)", re.M), re.compile(r"(?P<n>\d+)", re.M)
    assert late.pattern == compiled.pattern and late.flags == compiled.flags
    assert late.groupindex == compiled.groupindex
    assert late.findall("1 22") == compiled.findall("1 22")
    match = late.search("a 22")
    assert match is not None and match["n"] == "22"
    assert late.sub("x", "1 22") == "x x"
    assert compile_late(rb"\d").fullmatch(b"1")


def test_it_is_compiled_at_its_first_use_and_once() -> None:
    broken = compile_late("(")
    assert broken.pattern == "("
    with pytest.raises(re.error):
        broken.search("")
    late = compile_late("b")
    assert late.search.__self__ is late.search.__self__


def test_it_can_be_copied_and_lacks_what_patterns_lack() -> None:
    late = copy.deepcopy(compile_late("b"))
    assert late.search("abc")
    with pytest.raises(AttributeError):
        late.find("abc")


def test_every_pattern_of_the_rules_can_be_compiled() -> None:
    load_catalogue()
    # By type(): isinstance asks an object for its class, at which deprecated ones of frameworks warn.
    patterns = [each for each in gc.get_objects() if type(each) is LatePattern]
    assert len(patterns) > 300
    wrong = []
    for pattern in patterns:
        try:
            pattern.search  # noqa: B018 - the first use
        except re.error as error:
            wrong.append(f"{pattern.pattern!r}: {error}")
    assert [each for each in wrong if "'('" not in each] == []
