"""The evaluator is listed in the training cluster.

## Why it matters
An evaluator takes no part in training. If it is listed in `cluster`, the others wait at the start for one
more task, and it never joins.

## What to do
Take it out of `cluster`. The evaluator's own TF_CONFIG keeps `"task": {"type": "evaluator"}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Severity, Who, sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    listed = facts.spec.cluster.get("evaluator")
    if not listed or len(facts.spec.cluster) < 2 or facts.part_of_source("tf_config") is None:
        return
    if facts.part_of_source("vertex") is not None:
        return
    other_jobs = ", ".join(f'"{job}": […]' for job in facts.spec.cluster if job != "evaluator")
    yield Claim(
        summary="the evaluator is listed in the training cluster, which it never joins",
        who=(Who(job="evaluator", index=0),),
        evidence=(listed[0].evidence,),
        fix=f'"cluster": {{{other_jobs}}}',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=listed[0].origin.editor_place,
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a cluster that lists the evaluator as a job": (
            sample_config_facts(
                cluster={"worker": ["a:1", "b:1"], "evaluator": ["c:1"]}, task=("worker", 0)
            ),
            "the evaluator is listed in the training cluster, which it never joins",
        )
    },
    silent_on={
        "an evaluator that the cluster does not list": sample_config_facts(
            cluster={"worker": ["a:1", "b:1"]}, task=("evaluator", 0)
        )
    },
)
