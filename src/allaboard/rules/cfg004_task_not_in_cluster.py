"""The task that TF_CONFIG names is not in its cluster.

## Why it matters
An index that is one too high is the most common slip in a hand-written TF_CONFIG: indices count from 0
within each job. TensorFlow refuses the task with a ValueError on this worker only; all the others wait for
it. Python takes a negative index as counting from the end, so that it lands on another task.

## What to do
Use the type and an index in the range given. Only an evaluator may be absent from the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Origin, Stage, Value, sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    spec = facts.spec
    if spec.job is None or not spec.cluster:
        return
    job, listed = spec.job.text, spec.cluster.get(spec.job.text)
    written_names = [_name_in_source(name, tasks) for name, tasks in spec.cluster.items()]
    if listed is None:
        if job == "evaluator":
            return
        names, first_name = ", ".join(written_names), written_names[0]
        yield Claim(
            summary=f"the task is a {job!r}, but the cluster has no such job: it has {names}",
            who=own_member(spec),
            evidence=(spec.job.evidence,),
            fix=f'"task": {{"type": "{_most_similar_name(job, written_names) or first_name}", "index": 0}}',
            where=spec.job.origin.editor_place,
        )
        return
    index = spec.index.integer if spec.index is not None else None
    if index is None or spec.index is None or 0 <= index < len(listed):
        return
    job, last_index = _name_in_source(job, listed), len(listed) - 1
    span = f"0 to {last_index}" if last_index else "0"
    yield Claim(
        summary=f"{job} {index} is not in the cluster: {job} has {len(listed)} "
        f"task{'s' if last_index else ''}, so its index must be {span}",
        who=own_member(spec),
        evidence=(spec.index.evidence, listed[-1].evidence),
        fix=f'"task": {{"type": "{job}", "index": {min(max(index, 0), last_index)}}}',
        where=spec.index.origin.editor_place,
    )


def _name_in_source(job: str, listed: Sequence[Value]) -> str:
    """Return the job's name as the source writes it: Vertex AI's pools have names of their own."""
    pool = re.match(r"cluster\.(workerpool\d+)\[", listed[0].origin.key) if listed else None
    return pool[1] if pool else job


def _most_similar_name(job: str, written_names: list[str]) -> str:
    """Return the job name that differs from ``job`` in plural or upper case only, or ""."""
    plain = job.lower().rstrip("s")
    return next((k for k in written_names if k.lower().rstrip("s") == plain), "")


_TWO_WORKERS = {"worker": ["a:2222", "b:2222"]}


def _vertex_pool(index: int) -> ConfigFacts:
    facts = sample_config_facts(
        cluster={"worker": ["a:2222"]}, task=("worker", index), source="vertex"
    )
    task = Value("a:2222", Origin(variable="CLUSTER_SPEC", key="cluster.workerpool1[0]"))
    spec = msgspec.structs.replace(facts.spec, cluster={"worker": (task,)})
    return msgspec.structs.replace(facts, spec=spec)


RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "counted from 1": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("worker", 2)),
            "worker 2 is not in the cluster: worker has 2 tasks, so its index must be 0 to 1",
        ),
        "negative": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("worker", -1)),
            "worker -1 is not in the cluster: worker has 2 tasks, so its index must be 0 to 1",
        ),
        "one of Vertex AI's pools": (
            _vertex_pool(1),
            "workerpool1 1 is not in the cluster: workerpool1 has 1 task, so its index must be 0",
        ),
        "unknown job": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("workers", 0)),
            "the task is a 'workers', but the cluster has no such job: it has worker",
        ),
    },
    silent_on={
        "the last index": sample_config_facts(cluster=_TWO_WORKERS, task=("worker", 1)),
        "an evaluator beside the cluster": sample_config_facts(
            cluster=_TWO_WORKERS, task=("evaluator", 0)
        ),
    },
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
