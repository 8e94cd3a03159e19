"""One tree of errors: each has the common base, a name that ends in Error, and a line in the drawing."""

from __future__ import annotations

import re
from pathlib import Path

from allaboard import errors
from source_facts import read_facts

SRC = Path(__file__).parents[1] / "src" / "allaboard"
BUILT_IN = re.compile(r"(Error|Exception)$")


def test_every_error_of_ours_is_in_the_tree() -> None:
    found = {}
    for file in SRC.rglob("*.py"):
        if "probe" in file.parts or "jobs" in file.parts:
            continue  # runs in the user's process, with the standard library alone
        for defined in read_facts(file).definitions:
            if any(BUILT_IN.search(base) for base in defined.bases):
                found[defined.name] = defined.bases
    del found["AllaboardError"]
    assert [name for name, bases in found.items() if bases[0] != "AllaboardError"] == []
    assert [name for name in found if not name.endswith("Error")] == []
    drawn = re.findall(r"^[├└]── (\w+)", errors.__doc__ or "", re.M)
    assert sorted(drawn) == sorted(found)
