"""The task that TF_CONFIG names is not in its cluster.

## Why it matters
An index one too high is the commonest slip of a hand-written TF_CONFIG: indices count from 0
within each job. TensorFlow refuses the task with a ValueError on this worker only; all the others
wait for it. A negative index is taken by Python as counting from the end, and lands on somebody
else.

## What to do
Use the type and an index in the range given. An evaluator alone may be absent from the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Stage, facts_of
from allaboard.spec import own


def check(facts: ConfigFacts) -> Iterator[Claim]:
    spec = facts.spec
    if spec.job is None or not spec.cluster:
        return
    job, listed = spec.job.text, spec.cluster.get(spec.job.text)
    if listed is None:
        if job == "evaluator":
            return
        names = ", ".join(spec.cluster)
        first = next(iter(spec.cluster))
        yield Claim(
            summary=f"the task is a {job!r}, and the cluster has no such job: it has {names}",
            who=own(spec),
            evidence=(spec.job.evidence,),
            fix=f'"task": {{"type": "{_near(job, list(spec.cluster)) or first}", "index": 0}}',
            where=spec.job.origin.place,
        )
        return
    index = spec.index.integer if spec.index is not None else None
    if index is None or spec.index is None or 0 <= index < len(listed):
        return
    last = len(listed) - 1
    span = f"0 to {last}" if last else "0 alone"
    yield Claim(
        summary=f"{job} {index} is not in the cluster: {job} has {len(listed)} "
        f"task{'s' if last else ''}, so its index is {span}",
        who=own(spec),
        evidence=(spec.index.evidence, listed[-1].evidence),
        fix=f'"task": {{"type": "{job}", "index": {min(max(index, 0), last)}}}',
        where=spec.index.origin.place,
    )


def _near(job: str, known: list[str]) -> str:
    """The job whose name the given one nearly is: another number, another case."""
    plain = job.lower().rstrip("s")
    return next((k for k in known if k.lower().rstrip("s") == plain), "")


_TWO = {"worker": ["a:2222", "b:2222"]}

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "counted from 1": (
            facts_of(cluster=_TWO, task=("worker", 2)),
            "worker 2 is not in the cluster: worker has 2 tasks, so its index is 0 to 1",
        ),
        "negative": (
            facts_of(cluster=_TWO, task=("worker", -1)),
            "worker -1 is not in the cluster: worker has 2 tasks, so its index is 0 to 1",
        ),
        "unknown job": (
            facts_of(cluster=_TWO, task=("workers", 0)),
            "the task is a 'workers', and the cluster has no such job: it has worker",
        ),
    },
    silent_on={
        "the last index": facts_of(cluster=_TWO, task=("worker", 1)),
        "an evaluator beside the cluster": facts_of(cluster=_TWO, task=("evaluator", 0)),
    },
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
