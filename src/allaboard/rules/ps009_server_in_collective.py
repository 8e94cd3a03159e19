"""A collective strategy is created in a cluster that lists parameter servers.

## Why it matters
MultiWorkerMirroredStrategy knows only chief and workers. It nevertheless connects to every task of the
cluster, and no parameter server joins: the workers hang silently when the strategy starts, and a `ps` that
runs the same script fails with `There is no id for task_type 'ps'`.

The workers wait forever for the listed servers while the strategy starts.

## What to do
Remove `ps` from the cluster in TF_CONFIG of every task, and do not start it. Or train with
`tf.distribute.ParameterServerStrategy`, which uses it. Many job templates for TensorFlow list `ps` without
need.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import (
    COLLECTIVE_STRATEGY,
    is_collective_beside_servers,
    task_name,
)
from allaboard.analysis.roll_call.job_partition import SETTLE_S
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase, Stage
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import NOW, ps_member, sample_declaration, sample_job, sample_member

LAST_LOOK_S = 1.0
"""Seconds after the last arrival in which others of whom nothing is known yet may be seen for the first
time."""


def check(view: JobView) -> Iterator[Claim]:
    blocked = [m for m in view.alive if is_collective_beside_servers(m) and m.step == 0]
    if not blocked:
        return
    # The workers are reported together: one may import TensorFlow seconds longer than another.
    settle_s = SETTLE_S if any(_may_follow(m) for m in view.alive) else LAST_LOOK_S
    if view.now - max(m.phase_since for m in blocked) < settle_s:
        return
    declaration = blocked[0].declared
    assert declaration is not None
    listed = {t: a for t, a in declaration.cluster.items() if t.startswith("ps:")}
    servers = ", ".join(t.replace(":", " ") for t in listed)
    yield Claim(
        summary=f"{name_members(blocked)} {'create' if len(blocked) > 1 else 'creates'} a "
        f"{COLLECTIVE_STRATEGY}, but the cluster lists {servers}, which never joins it",
        who=tuple(m.who for m in blocked),
        evidence=(
            Evidence(", ".join(f"{t} = {a}" for t, a in listed.items()), declaration.origin),
            *(
                Evidence(f"{task_name(m)} in {m.detail or 'its start'}", "black box")
                for m in blocked[:2]
            ),
        ),
        fix=f'remove "ps" from the cluster in {declaration.origin} of every task, or train with '
        "ParameterServerStrategy",
        certainty=Certainty.LIKELY,
    )


def _may_follow(member: Member) -> bool:
    """Return True if a member is on its way to the place where the others are blocked."""
    return member.in_user_code and member.declared is None and not member.launcher


def _declaring(*tasks: str) -> dict[str, object]:
    cluster = {t: f"127.0.0.1:{i}" for i, t in enumerate(tasks)}
    return {
        "declared": sample_declaration(
            0, call=COLLECTIVE_STRATEGY, framework="tensorflow", cluster=cluster, origin="TF_CONFIG"
        ),
        "phase": Phase.JOINING, "step": 0,
    }  # fmt: skip


RULE = Rule(
    stage=Stage.STARTUP,
    reads=JobView,
    check=check,
    fires_on={
        "two workers hang at the start of MultiWorkerMirroredStrategy": (
            sample_job(
                *(sample_member(i, **_declaring("worker:0", "worker:1", "ps:0")) for i in range(2))
            ),
            "worker 0, worker 1 create a MultiWorkerMirroredStrategy, but the cluster lists ps 0, which "
            "never joins it",
        ),
        "one of them has not come for long": (
            sample_job(
                sample_member(0, **_declaring("worker:0", "worker:1", "ps:0")),
                sample_member(1, phase=Phase.IMPORTED, step=0, declared=None),
            ),
            "worker 0 creates a MultiWorkerMirroredStrategy, but the cluster lists ps 0, which never joins "
            "it",
        ),
    },
    silent_on={
        "another one still imports TensorFlow, and may be in the same place soon": sample_job(
            sample_member(
                0, **(_declaring("worker:0", "worker:1", "ps:0") | {"phase_since": NOW - 2.0})
            ),
            sample_member(1, phase=Phase.IMPORTING, step=0, declared=None),
        ),
        "the cluster lists only workers": sample_job(
            sample_member(0, **_declaring("worker:0", "worker:1"))
        ),
        "the cluster lists a worker and an evaluator": sample_job(
            sample_member(0, **_declaring("worker:0", "evaluator:0"))
        ),
        "workers that use the parameter servers of their cluster": sample_job(
            ps_member("worker", 0), ps_member("worker", 1), ps_member("ps", 0)
        ),
        "a worker trains although its cluster lists a parameter server": sample_job(
            sample_member(0, **(_declaring("worker:0", "worker:1", "ps:0") | {"step": 9}))
        ),
    },
    retry=Retry.NEVER,
    drill=("tf-lists-ps",),
)
