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
from allaboard.configuration.spec.job_names import plain_job_name
from allaboard.contracts import Rule
from allaboard.facts import Claim, ClusterSpec, ConfigFacts, Origin, Value
from allaboard.facts.address import is_this_host_alone, join_host_port, parse_address, whole_number
from allaboard.facts.configuration.config_facts import sample_config_facts

_TENSORFLOW_JOBS = ("chief", "master", "ps", "worker")
"""Jobs of a cluster; an evaluator is none."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    spec = facts.spec
    if spec.job is None or not spec.cluster:
        return
    job, listed = spec.job.text, spec.cluster.get(spec.job.text)
    written_names = [_name_in_source(name, tasks) for name, tasks in spec.cluster.items()]
    if listed is None:
        if job == "evaluator":
            return
        misnamed = next((j for j in spec.cluster if plain_job_name(j) == job), "")
        names = ", ".join(written_names)
        yield Claim(
            summary=f"the task is a {job!r}, but the cluster has no such job: it has {names}",
            who=own_member(spec),
            evidence=(spec.job.evidence, *(v.evidence for v in spec.cluster.get(misnamed, ())[:1])),
            fix=_renamed_jobs(spec) if misnamed else _corrected_task(spec, job, written_names),
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


def _renamed_jobs(spec: ClusterSpec) -> str:
    """Return the cluster with TensorFlow's names in place of the names of variables or flags."""
    jobs = {plain_job_name(job) or job: tasks for job, tasks in spec.cluster.items()}
    parts = [
        f'"{job}": [{", ".join(_quoted(v) for v in tasks[:3])}]' for job, tasks in jobs.items()
    ]
    return f'"cluster": {{{", ".join(parts)}}}'


def _corrected_task(spec: ClusterSpec, job: str, written_names: list[str]) -> str:
    """Return the task under a name that the cluster has; if its own is one of TensorFlow's names, rather the
    entry that the cluster lacks."""
    similar = _most_similar_name(job, written_names)
    if similar or job not in _TENSORFLOW_JOBS:
        return f'"task": {{"type": "{similar or written_names[0]}", "index": 0}}'
    hosts = {parse_address(v.text).host for _, _, v in spec.tasks()}
    if all(is_this_host_alone(host) for host in hosts):
        ports = [whole_number(parse_address(v.text).port) or 0 for _, _, v in spec.tasks()]
        address = join_host_port(min(hosts), min(max(ports, default=0), 65534) + 1)
    else:
        address = f"HOST-OF-{job.upper()}:2222"
    return f'"{job}": ["{address}"]   # one more entry of "cluster", in every task\'s TF_CONFIG'


def _quoted(value: Value) -> str:
    return f'"{value.text}"'


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
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the index is counted from 1: worker 2 of two workers": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("worker", 2)),
            "worker 2 is not in the cluster: worker has 2 tasks, so its index must be 0 to 1",
        ),
        "a negative task index": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("worker", -1)),
            "worker -1 is not in the cluster: worker has 2 tasks, so its index must be 0 to 1",
        ),
        "an index beyond the pool in Vertex AI's CLUSTER_SPEC": (
            _vertex_pool(1),
            "workerpool1 1 is not in the cluster: workerpool1 has 1 task, so its index must be 0",
        ),
        "a task of type `chief` in a cluster that lists only workers": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("chief", 0)),
            "the task is a 'chief', but the cluster has no such job: it has worker",
        ),
        "a cluster whose jobs are called `ps_hosts` and `worker_hosts`": (
            sample_config_facts(
                cluster={"ps_hosts": ["a:2222"], "worker_hosts": ["b:2222"]}, task=("worker", 0)
            ),
            "the task is a 'worker', but the cluster has no such job: it has ps_hosts, worker_hosts",
        ),
        "a task of type `workers` in a cluster whose job is `worker`": (
            sample_config_facts(cluster=_TWO_WORKERS, task=("workers", 0)),
            "the task is a 'workers', but the cluster has no such job: it has worker",
        ),
    },
    silent_on={
        "the last of two workers, with index 1": sample_config_facts(
            cluster=_TWO_WORKERS, task=("worker", 1)
        ),
        "an evaluator, which the cluster need not list": sample_config_facts(
            cluster=_TWO_WORKERS, task=("evaluator", 0)
        ),
    },
)
