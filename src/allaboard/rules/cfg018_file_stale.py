"""The file of a file:// rendezvous exists already: an earlier run left it.

## Why it matters
The file is the store itself. Ranks that find an old one read the addresses of processes that are gone: one
fails (`connectFullMesh … refused`), the others hang. PyTorch removes the file only if all ranks end in good
order.

## What to do
Remove the file before each run, on the shared disk, once no run uses it. A file that was written a moment
ago may belong to the run that is starting.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, FilePlace, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts

STARTING_RUN_S = 120.0
"""A file that was written less than this many seconds ago may belong to a run that is starting."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    rendezvous_file, url = facts.place, facts.spec.values.get("init_url")
    if (
        rendezvous_file is None
        or url is None
        or rendezvous_file.size <= 0
        or rendezvous_file.age < STARTING_RUN_S
    ):
        return
    yield Claim(
        summary=f"the rendezvous file {rendezvous_file.path} is left over from an earlier run: "
        f"last written {_describe_age(rendezvous_file.age)} ago",
        who=own_member(facts.spec),
        evidence=(
            url.evidence,
            Evidence(
                f"{rendezvous_file.size} bytes, {_describe_age(rendezvous_file.age)} old", "stat"
            ),
        ),
        fix=f"rm {shlex.quote(rendezvous_file.path)}",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
        where=url.origin.editor_place,
    )


def _describe_age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _facts(size: int, age: float) -> ConfigFacts:
    rendezvous_file = FilePlace(path="/shared/rdzv", size=size, age=age)
    return sample_config_facts(
        init_url="file:///shared/rdzv", place=rendezvous_file, source="init_url"
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a file that was last written 25 hours ago": (
            _facts(812, 90000.0),
            "the rendezvous file /shared/rdzv is left over from an earlier run: last written 25 hours ago",
        )
    },
    silent_on={
        "the file does not exist yet": _facts(-1, -1.0),
        "an empty file, such as one that was created by hand": _facts(0, 90000.0),
        "a file that was written 5 seconds ago, by the run that is starting": _facts(812, 5.0),
    },
)
