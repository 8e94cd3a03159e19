"""A parameter server holds no variable: there are more servers than variables.

## Why it matters
Variables are dealt out whole, in turn. A server beyond their number holds nothing and serves nobody, yet it
takes a process and its memory, and the chief waits for it at every start like for any other.

What waits for what: nobody waits for this server during training. But the other servers get no relief from
it either.

## What to do
Start fewer servers, or cut the large variables into parts, so that there is something for each server:
`partitioner=tf.fixed_size_partitioner(P)` in `get_variable`, `variable_partitioner=` of
ParameterServerStrategy.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers.task_roles import SERVER_JOBS, training_members
from allaboard.analysis.parameter_servers.variable_placement import find_placement
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity, Stage
from allaboard.facts.samples import ps_member, sample_declaration, sample_job

STEPS = 5
"""Steps after which every variable that training uses has been made."""


def check(view: JobView) -> Iterator[Claim]:
    placed = find_placement(view)
    if not placed or max((m.step for m in training_members(view)), default=0) < STEPS:
        return
    servers = [m for m in view.alive if m.who.job in SERVER_JOBS and _known_of(view, m)]
    idle = [m for m in servers if f"{m.who.job}:{m.who.index}" not in placed]
    if not idle or len(idle) == len(servers):
        return  # all of them: the variables are made where this does not see it
    count = sum(held.variables for task_, held in placed.items() if task_.startswith("ps:"))
    yield Claim(
        summary=f"{name_members(idle)} {'hold' if len(idle) > 1 else 'holds'} no variable: there "
        f"{'is' if count == 1 else 'are'} {count} variable{'s' * (count != 1)} for {len(servers)} servers",
        who=tuple(m.who for m in idle),
        evidence=(
            Evidence(
                ", ".join(
                    f"{t.replace(':', ' ')}: {h.variables}" for t, h in sorted(placed.items())
                ),
                "devices of the variables",
            ),
        ),
        fix=(
            f"take {name_members(idle)} out of the cluster"
            if view.joined
            else f"allaboard run --ps {len(servers) - len(idle)} ..."
        )
        + "; or cut large variables into parts (partitioner=)",
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
    )


def _known_of(view: JobView, server: Member) -> bool:
    """Whether those who train were told of it; where they were not, that is another matter (JOIN006)."""
    told = server.declared
    others = (m.declared for m in training_members(view))
    return told is None or all(t is None or t.world_size >= told.world_size for t in others)


def _placed(*tasks: str) -> dict[str, dict[str, str]]:
    return {"notes": {f"placed on {t}": "1 variables, 512 bytes" for t in tasks}}


_ONE = sample_declaration(0, 2, job="worker", index=0, cluster={"worker:0": "a:1", "ps:0": "a:2"})
_TWO = (ps_member("ps", 0), ps_member("ps", 1, number=3))
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=JobView,
    check=check,
    needs=("step",),
    fires_on={
        "one variable for two": (
            sample_job(ps_member("worker", 0, **_placed("ps:0")), *_TWO),
            "ps 1 holds no variable: there is 1 variable for 2 servers",
        ),
    },
    silent_on={
        "one that those who train were not told of": sample_job(
            ps_member("worker", 0, declared=_ONE, **_placed("ps:0")), *_TWO
        ),
        "one for each": sample_job(ps_member("worker", 0, **_placed("ps:0", "ps:1")), *_TWO),
        "they are being made": sample_job(ps_member("worker", 0, step=0, **_placed("ps:0")), *_TWO),
        "made where nobody looks": sample_job(ps_member("worker", 0), *_TWO),
        "all on the workers": sample_job(ps_member("worker", 0, **_placed("worker:0")), *_TWO),
    },
    since="0.1",
    drill=("tf2-ps-idle",),
)
