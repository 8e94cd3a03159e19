"""Members run different scripts.

## Why it matters
A host that was not synchronised runs last week's code: its model has other parameters, its loop other
collectives. JAX trains on with wrong numbers and exit code 0; the others hang or abort in the middle.

## What to do
Copy the script again (`rsync`), check out the same commit on every host, or put the script on a file system
that all hosts share.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.environment_drift import (
    example_side_by_side,
    find_fact_differences,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Severity


def check(view: JobView) -> Iterator[Claim]:
    for _, difference in find_fact_differences(view, lambda name: name == "script"):
        paths = [
            Evidence(
                f"{m.facts.get('script path', '')} sha256 {m.facts.get('script', '')}"
                + (f" commit {m.facts['commit']}" if "commit" in m.facts else ""),
                m.who.host,
            )
            for m in difference.members[:4]
        ]
        hosts = ", ".join(m.who.host for m in difference.members[:4])
        yield Claim(
            summary=f"the script differs: {difference.description}",
            who=tuple(m.who for m in difference.members),
            evidence=tuple(paths),
            fix=f"copy the script to {hosts} again; compare with: sha256sum SCRIPT",
            severity=Severity.WARNING,
        )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one host has another script than the others": (
            example_side_by_side("script", "aa11", "aa11", "bb22", "aa11"),
            "the script differs: h2 (rank 2) has bb22, the others aa11",
        )
    },
    silent_on={
        "all hosts have the same script": example_side_by_side(
            "script", "aa11", "aa11", "aa11", "aa11"
        )
    },
    drill=("net-other-script",),
)
