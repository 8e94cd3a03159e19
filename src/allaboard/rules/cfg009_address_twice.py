"""Two tasks of a cluster have the same address.

## Why it matters
One address can serve one task. The second task to start cannot bind its port and fails (TensorFlow says `No
address added out of total 1 resolved`), or, on another host, is never reached; the others wait.

## What to do
Give the second entry its own host, or its own port if both are on one host.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Who, sample_config_facts, whole_number
from allaboard.facts.address import canonical_address, join_host_port, parse_address

_MAX_REPORTED = 20


def check(facts: ConfigFacts) -> Iterator[Claim]:
    task_by_address: dict[str, tuple[str, int]] = {}
    taken_addresses = {canonical_address(v.text) for _, _, v in facts.spec.tasks()}
    reported = 0
    for job, index, value in facts.spec.tasks():
        name = canonical_address(value.text)
        if name not in task_by_address:
            task_by_address[name] = (job, index)
            continue
        reported += 1
        if reported > _MAX_REPORTED or not parse_address(value.text).port:
            continue
        other_job, other_index = task_by_address[name]
        other_value = facts.spec.cluster[other_job][other_index]
        yield Claim(
            summary=f"{other_job} {other_index} and {job} {index} have the same address {value.text}",
            who=(Who(job=other_job, index=other_index), Who(job=job, index=index)),
            evidence=(other_value.evidence, value.evidence),
            fix=f'"{_next_free_address(value.text, taken_addresses)}" for one of them, or another host',
            where=value.origin.editor_place,
        )


def _next_free_address(text: str, taken_addresses: set[str]) -> str:
    """Return the address with the next higher port that no task of the cluster has."""
    parsed = parse_address(text)
    port = whole_number(parsed.port) or 2222
    while canonical_address(join_host_port(parsed.host, port)) in taken_addresses and port < 65535:
        port += 1
    return join_host_port(parsed.host, port)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "two workers with the same host and port": (
            sample_config_facts(cluster={"worker": ["a:2222", "a:2222"]}, task=("worker", 0)),
            "worker 0 and worker 1 have the same address a:2222",
        ),
        "a chief and a worker whose addresses differ only in case": (
            sample_config_facts(
                cluster={"chief": ["a:2222"], "worker": ["A:2222"]}, task=("worker", 0)
            ),
            "chief 0 and worker 0 have the same address A:2222",
        ),
    },
    silent_on={
        "two workers on one host with different ports": sample_config_facts(
            cluster={"worker": ["a:2222", "a:2223"]}, task=("worker", 0)
        )
    },
)
