"""Which drills run every time, and which in the long run only.

Every rule is fired once, by the first drill that it names, and every job of the room is trained once; the
others stage the same rules under other frameworks and circumstances, and are for `--long`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from allaboard.contracts import Drill
from allaboard.rules.engine.catalogue import load_catalogue
from multihost_drills.contract import HostDrill


def chosen(
    drills: Mapping[str, Drill] | Mapping[str, HostDrill], alone: tuple[str, ...] = ()
) -> list[Any]:
    """The names of all, those for the long run marked so; the drills of rules that begin with one of
    ``alone`` have the machine for themselves."""
    first = {e.rule.drill[0] for e in load_catalogue().entries if e.rule.drill}
    scripts: dict[object, str] = {}
    for name, drill in drills.items():
        if not drill.long:
            scripts.setdefault(getattr(drill, "script", None), name)
    everyday = {
        name
        for name, drill in drills.items()
        if not drill.long and (name in first or not drill.expects or name in scripts.values())
    }
    return [
        pytest.param(
            name,
            marks=[
                *([] if name in everyday else [pytest.mark.long]),
                *([pytest.mark.alone] if alone and drill.expects.startswith(alone) else []),
            ],
        )
        for name, drill in drills.items()
    ]
