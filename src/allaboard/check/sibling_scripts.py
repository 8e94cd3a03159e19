"""Scripts that the user named together, each of which may be one member of a job: the others say so."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from allaboard.facts import ScriptFacts
from allaboard.late_pattern import compile_late

MAX_SIBLINGS = 64
"""Scripts beyond which nobody writes one for each member."""
_JOINS_WITH_RANK = compile_late(
    r"init_process_group|distributed\.initialize|train\.Server|ClusterResolver|environ.*RANK"
)


def with_siblings(
    scripts: Sequence[ScriptFacts], walked: Collection[str] = ()
) -> list[ScriptFacts]:
    """Return the scripts, each with the others that join a job; those of a folder only with their
    neighbours."""
    joining = [s for s in scripts if _JOINS_WITH_RANK.search(s.source)]
    if not 1 < len(joining) <= MAX_SIBLINGS:
        return list(scripts)
    files = {s.file for s in joining}
    return [
        msgspec.structs.replace(
            script,
            siblings=tuple(s for s in joining if s is not script and _belong(s, script, walked)),
        )
        if script.file in files
        else script
        for script in scripts
    ]


def _belong(sibling: ScriptFacts, script: ScriptFacts, walked: Collection[str]) -> bool:
    if sibling.file in walked or script.file in walked:
        return sibling.file.rpartition("/")[0] == script.file.rpartition("/")[0]
    return True
