"""Services of a Compose file are members of one job, and cannot meet as they are written.

## Why it matters
Each service has a network of its own: `localhost` in one container is not another container, so a rank that
looks for rank 0 there waits for itself. And `replicas` starts the same container several times, with the same
variables: with a RANK in them, all are one rank, and the others never come.

## What to do
Write the name of rank 0's service for MASTER_ADDR, and a service for each rank. With `network_mode: host`
in all services, `localhost` is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Origin, Problem
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(facts.problems, "compose", Certainty.LIKELY)


_MESSAGE = (
    "MASTER_ADDR is localhost, which is the container of node1 itself: rank 1 waits for rank 0 in its own "
    "container"
)
_PROBLEM = Problem(
    kind="compose",
    message=_MESSAGE,
    observed="MASTER_ADDR=localhost, RANK=1",
    correction="MASTER_ADDR: SERVICE-OF-RANK-0   # the name of that service",
    origin=Origin(variable="MASTER_ADDR", file="compose.yaml", line=16, column=20),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the service of rank 1 has MASTER_ADDR=localhost": (
            sample_config_facts("compose", problems=(_PROBLEM,)),
            _MESSAGE,
        )
    },
    silent_on={"a Compose file without such a problem": sample_config_facts("compose")},
)
