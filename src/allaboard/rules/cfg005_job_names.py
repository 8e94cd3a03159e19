"""The cluster has job names or counts that no TensorFlow strategy accepts.

## Why it matters
Keras and the strategies of TF2 know `chief`, `worker`, `ps` and `evaluator`, and at most one chief and one
evaluator. A job with any other name is refused on some members, and others wait for it forever. `master`
was the chief's name in TF1's estimators; TF2 no longer accepts it.

## What to do
Rename the job as shown. TF1 programs that make their own sessions (`tf.train.Server`) may use any names:
then use `allaboard check --ignore CFG005`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.configuration.spec.job_names import plain_job_name
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Severity, sample_config_facts

_KERAS_JOBS = ("chief", "worker", "ps", "evaluator")


def check(facts: ConfigFacts) -> Iterator[Claim]:
    if facts.part_of_source("tf_config") is None:
        return
    cluster, task = facts.spec.cluster, facts.spec.job
    if task is not None and task.text not in cluster and task.text in map(plain_job_name, cluster):
        return  # task-not-in-cluster reports it, with all names
    for job, listed in cluster.items():
        meant = plain_job_name(job)
        if job == "master" and facts.api:
            continue  # the chief's name in tf.contrib.learn
        if job not in _KERAS_JOBS and meant:
            yield Claim(
                summary=f"the cluster has a job {job!r}; TensorFlow's name for it is {meant!r}",
                who=own_member(facts.spec),
                evidence=(listed[0].evidence,),
                fix=f'"{meant}": [{", ".join(f"{chr(34)}{v.text}{chr(34)}" for v in listed[:3])}]',
                severity=Severity.WARNING if job == "master" else Severity.ERROR,
                certainty=Certainty.LIKELY,
                where=listed[0].origin.editor_place,
            )
        elif job in ("chief", "evaluator") and len(listed) > 1:
            yield Claim(
                summary=f"the cluster has {len(listed)} tasks of the job {job!r}; "
                "TensorFlow allows at most one",
                who=own_member(facts.spec),
                evidence=(listed[0].evidence, listed[1].evidence),
                fix=f'"{job}": ["{listed[0].text}"], and the others as "worker"',
                where=listed[1].origin.editor_place,
            )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the job is called `workers` instead of `worker`": (
            sample_config_facts(cluster={"workers": ["a:1", "b:1"]}, task=("workers", 0)),
            "the cluster has a job 'workers'; TensorFlow's name for it is 'worker'",
        ),
        "a cluster with two chiefs": (
            sample_config_facts(cluster={"chief": ["a:1", "b:1"]}, task=("chief", 0)),
            "the cluster has 2 tasks of the job 'chief'; TensorFlow allows at most one",
        ),
    },
    silent_on={
        "a cluster with one chief and one worker": sample_config_facts(
            cluster={"chief": ["a:1"], "worker": ["b:1"]}, task=("worker", 0)
        ),
        "a job called `trainer`, which is no misspelling of a TensorFlow job": sample_config_facts(
            cluster={"trainer": ["a:1", "b:1"]}, task=("trainer", 0)
        ),
    },
)
