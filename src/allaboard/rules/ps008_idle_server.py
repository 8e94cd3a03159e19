"""A parameter server holds no variables: there are more servers than variables.

## Why it matters
Variables are placed whole, round-robin. A server beyond their number holds nothing and serves no one, but it
needs a process and memory, and the chief waits for it at every start like for any other.

No member waits for this server during training, but it does not relieve the other servers either.

## What to do
Start fewer servers, or partition the large variables, so that every server holds some:
`partitioner=tf.fixed_size_partitioner(P)` in `get_variable`, `variable_partitioner=` of
ParameterServerStrategy.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.member_names import name_members
from allaboard.analysis.parameter_servers import SERVER_JOBS, find_placement, training_members
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Severity
from allaboard.facts.samples import ps_member, sample_declaration, sample_job

MIN_STEPS = 5
"""Steps after which all variables that training uses have been created."""


def check(view: JobView) -> Iterator[Claim]:
    placed = find_placement(view)
    if not placed or max((m.step for m in training_members(view)), default=0) < MIN_STEPS:
        return
    servers = [m for m in view.alive if m.who.job in SERVER_JOBS and _is_known(view, m)]
    idle = [m for m in servers if f"{m.who.job}:{m.who.index}" not in placed]
    if not idle or len(idle) == len(servers):
        return  # all of them: the variables are created where the probe does not see it
    count = sum(
        placement.variables for task_, placement in placed.items() if task_.startswith("ps:")
    )
    yield Claim(
        summary=f"{name_members(idle)} {'hold' if len(idle) > 1 else 'holds'} no variables: there "
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
            f"remove {name_members(idle)} from the cluster"
            if view.joined
            else f"allaboard run --ps {len(servers) - len(idle)} ..."
        )
        + "; or partition large variables (partitioner=)",
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
    )


def _is_known(view: JobView, server: Member) -> bool:
    """Return True if the training members have the server in their cluster; otherwise JOIN006 reports it."""
    declaration = server.declared
    declarations = (m.declared for m in training_members(view))
    return declaration is None or all(
        t is None or t.world_size >= declaration.world_size for t in declarations
    )


def _placed(*tasks: str) -> dict[str, dict[str, str]]:
    return {"notes": {f"placed on {t}": "1 variables, 512 bytes" for t in tasks}}


_ONE = sample_declaration(0, 2, job="worker", index=0, cluster={"worker:0": "a:1", "ps:0": "a:2"})
_TWO = (ps_member("ps", 0), ps_member("ps", 1, number=3))
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("step",),
    fires_on={
        "one variable for two servers": (
            sample_job(ps_member("worker", 0, **_placed("ps:0")), *_TWO),
            "ps 1 holds no variables: there is 1 variable for 2 servers",
        )
    },
    silent_on={
        "a server that is not in the worker's cluster": sample_job(
            ps_member("worker", 0, declared=_ONE, **_placed("ps:0")), *_TWO
        ),
        "one variable on each of two servers": sample_job(
            ps_member("worker", 0, **_placed("ps:0", "ps:1")), *_TWO
        ),
        "no step has been made, so the variables are still being created": sample_job(
            ps_member("worker", 0, step=0, **_placed("ps:0")), *_TWO
        ),
        "variables that are created where the probe does not look": sample_job(
            ps_member("worker", 0), *_TWO
        ),
        "all variables are on the worker itself": sample_job(
            ps_member("worker", 0, **_placed("worker:0")), *_TWO
        ),
    },
    drill=("tf2-ps-idle",),
)
