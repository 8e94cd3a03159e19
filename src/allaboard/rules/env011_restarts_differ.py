"""The hosts were given different options for restarting the job.

## Why it matters
A job on several hosts is restarted on all of them together, or not at all. A host without `--on-failure
restart` ends with its worker, and then nothing can restart it. If only the numbers differ, those of rank 0's
host count for the whole job.

## What to do
Give the same options on every host: put them into the command that the launcher starts everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.environment_drift import (
    example_side_by_side,
    find_fact_differences,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Severity

RESTARTS_FACT = "restarts"
STOP_OPTION = "--on-failure stop"


def check(view: JobView) -> Iterator[Claim]:
    for _, difference in find_fact_differences(view, lambda name: name == RESTARTS_FACT):
        options = {difference.majority_value, *(value for value, _ in difference.deviations)}
        restart_option = next(
            (t for t in sorted(options) if t not in (STOP_OPTION, "")), STOP_OPTION
        )
        yield Claim(
            summary=f"the hosts' restart options differ: {difference.description}"
            + ("; nothing is restarted" if STOP_OPTION in options else ""),
            who=tuple(m.who for m in difference.members),
            evidence=tuple(
                Evidence(m.facts.get(RESTARTS_FACT, "") or "no option", m.who.host)
                for m in difference.members[:4]
            ),
            fix=f"give every host the same: allaboard run {restart_option} ...",
            severity=Severity.WARNING,
        )


_RESTART_OPTIONS = "--on-failure restart --max-restarts 3 --backoff 1"

RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one host stops on failure, and the others restart": (
            example_side_by_side(
                RESTARTS_FACT, _RESTART_OPTIONS, _RESTART_OPTIONS, STOP_OPTION, _RESTART_OPTIONS
            ),
            f"the hosts' restart options differ: h2 (rank 2) has {STOP_OPTION}, the others "
            f"{_RESTART_OPTIONS}; nothing is restarted",
        ),
        "one host allows 9 restarts, and the others 3": (
            example_side_by_side(
                RESTARTS_FACT,
                _RESTART_OPTIONS,
                _RESTART_OPTIONS,
                _RESTART_OPTIONS,
                _RESTART_OPTIONS.replace("3", "9"),
            ),
            "the hosts' restart options differ: h3 (rank 3) has --on-failure restart --max-restarts 9 "
            f"--backoff 1, the others {_RESTART_OPTIONS}",
        ),
    },
    silent_on={
        "all hosts have the same restart options": example_side_by_side(
            RESTARTS_FACT, _RESTART_OPTIONS, _RESTART_OPTIONS, _RESTART_OPTIONS, _RESTART_OPTIONS
        ),
        "no host restarts anything": example_side_by_side(
            RESTARTS_FACT, STOP_OPTION, STOP_OPTION, STOP_OPTION, STOP_OPTION
        ),
    },
    drill=("restarts-differ",),
)
