"""A script for parameter servers runs in a cluster without parameter servers.

## Why it matters
If the cluster lists no `ps`, `replica_device_setter` places nothing: each TensorFlow 1 worker keeps the
variables to itself. Worker 0 then trains alone and exits with code 0; the others wait for a chief that
initializes only its own copy. Nothing is printed. TensorFlow 2 refuses to start: `There must be at least one
ps.`

The other workers wait forever for worker 0.

## What to do
Start servers too: `allaboard run --ps 1 -n 2 SCRIPT` (with `--chief` for ParameterServerStrategy). Or list
them in TF_CONFIG: `"ps": ["host:2222"]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Phase, Raised
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import ps_member, sample_declaration, sample_job, sample_member

NO_SERVER_NOTE = "replica_device_setter"
"""Note of the probe if replica_device_setter found no ps on which to place variables."""
REFUSAL = "There must be at least one ps"
"""Raised by ParameterServerStrategyV2._verify_args_and_config of TensorFlow 2.21."""


def check(view: JobView) -> Iterator[Claim]:
    without_servers = [
        m
        for m in view.members
        if NO_SERVER_NOTE in m.notes and _placed_nothing(m) and not m.launcher
    ]
    refused = [m for m in view.members if m.raised is not None and REFUSAL in m.raised.message]
    if without_servers:
        yield _claim(without_servers, NO_SERVER_NOTE, "every worker keeps the variables to itself")
    elif refused:
        yield _claim(refused, "ParameterServerStrategy", "the strategy refuses to start")


def _placed_nothing(member: Member) -> bool:
    declaration = member.declared
    if declaration is None or declaration.world_size < 2:
        return False
    return not any(t.startswith("ps:") for t in declaration.cluster)


def _claim(members: list[Member], api: str, consequence: str) -> Claim:
    declaration = members[0].declared
    cluster = ", ".join(declaration.cluster) if declaration is not None else "no ps"
    return Claim(
        summary=f"{name_members(members)} {'use' if len(members) > 1 else 'uses'} {api} in a cluster without "
        f"parameter servers: {consequence}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(
                f"tasks: {cluster}", declaration.origin if declaration is not None else "TF_CONFIG"
            ),
            *(
                Evidence(m.raised.message, m.raised.type)
                for m in members[:1]
                if m.raised is not None
            ),
        ),
        fix=f"allaboard run --ps 1 -n {len(members)} "
        f"...{'' if api == NO_SERVER_NOTE else ' --chief ...'}; or list "
        '"ps": ["host:2222"] in TF_CONFIG of every task',
        certainty=Certainty.CERTAIN,
    )


def _worker(index: int, **changes: object) -> Member:
    cluster = {"worker:0": "127.0.0.1:1", "worker:1": "127.0.0.1:2"}
    declaration = sample_declaration(
        index, size=2, framework="tensorflow", cluster=cluster, origin="TF_CONFIG"
    )
    return sample_member(index, declared=declaration, **changes)


_NOTED = {"notes": {NO_SERVER_NOTE: "no ps in its cluster"}}
_RAISED = Raised(type="ValueError", message="There must be at least one ps.", raised_at=90.0)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "workers of TensorFlow 1 keep the variables to themselves": (
            sample_job(_worker(0, **_NOTED), _worker(1, **_NOTED)),
            "worker 0, worker 1 use replica_device_setter in a cluster without parameter servers: "
            "every worker keeps the variables to itself",
        ),
        "ParameterServerStrategy of TensorFlow 2 refuses to start": (
            sample_job(sample_member(0, declared=None, phase=Phase.IMPORTED, raised=_RAISED)),
            "worker 0 uses ParameterServerStrategy in a cluster without parameter servers: the strategy "
            "refuses to start",
        ),
    },
    silent_on={
        "the cluster has a parameter server": sample_job(
            ps_member("worker", 0), ps_member("ps", 0)
        ),
        "a single process that uses `replica_device_setter`": sample_job(
            sample_member(0, declared=None, **_NOTED)
        ),
        "workers of a job that uses collectives": sample_job(_worker(0), _worker(1)),
    },
    retry=Retry.NEVER,
    drill=("ps-without", "tf2-ps-without"),
)
