"""A cluster with parameter servers has no chief.

## Why it matters
TF2's ParameterServerStrategy runs its coordinator on the chief. Without a chief nothing creates the
variables or schedules a step, and workers and parameter servers serve silently forever. TF1 programs that
make worker 0 their chief need none.

## What to do
Give the coordinator's process an entry `"chief": ["host:2222"]` in every member's TF_CONFIG. For a TF1
program, use `allaboard check --ignore CFG011`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Severity, sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    cluster = facts.spec.cluster
    if "ps" not in cluster or "chief" in cluster or "master" in cluster:
        return
    if facts.part_of_source("tf_config") is None:
        return
    yield Claim(
        summary="the cluster has parameter servers but no chief: "
        "ParameterServerStrategy would have no coordinator",
        who=own_member(facts.spec),
        evidence=(cluster["ps"][0].evidence,),
        fix='"chief": ["host:2222"]',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=cluster["ps"][0].origin.editor_place,
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a cluster of parameter servers and workers alone": (
            sample_config_facts(cluster={"ps": ["a:1"], "worker": ["b:1"]}, task=("worker", 0)),
            "the cluster has parameter servers but no chief: "
            "ParameterServerStrategy would have no coordinator",
        )
    },
    silent_on={
        "a cluster of parameter servers, workers and a chief": sample_config_facts(
            cluster={"ps": ["a:1"], "worker": ["b:1"], "chief": ["c:1"]}, task=("worker", 0)
        ),
        "parameter servers and workers in a TensorFlow 1 script, which needs no chief": sample_config_facts(
            cluster={"ps": ["a:1"], "worker": ["b:1"]}, source="literal"
        ),
    },
)
