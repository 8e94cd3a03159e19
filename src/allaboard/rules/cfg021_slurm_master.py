"""Under Slurm, MASTER_ADDR is not the node that rank 0 runs on.

## Why it matters
Rank 0 opens the store on its own node, and Slurm puts task 0 on the first node of the list. If MASTER_ADDR
names another node, rank 0 listens on one node, and all others connect to another.

## What to do
Take the first node: `export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Severity, sample_config_facts
from allaboard.facts.address import is_this_host_alone


def check(facts: ConfigFacts) -> Iterator[Claim]:
    slurm, master = facts.part_of_source("slurm"), facts.spec.values.get("master_addr")
    if slurm is None or master is None or not slurm.machines or len(slurm.machines) < 2:
        return
    # Under torchrun the master may be any node: it is the one of the first agent.
    if facts.is_set("TORCHELASTIC_RUN_ID") or facts.part_of_source("torchrun") is not None:
        return
    name = master.text.strip().lower()
    names = [m.name.text.lower() for m in slurm.machines]
    short = name.partition(".")[0]
    # A name that is none of the nodes may be another interface of the first one.
    if is_this_host_alone(name) or short not in names or short == names[0]:
        return
    yield Claim(
        summary=f"MASTER_ADDR is {master.text}, but rank 0 runs on {names[0]}, the first node of the list",
        who=own_member(facts.spec),
        evidence=(master.evidence, slurm.machines[0].name.evidence),
        fix='export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
        where=master.origin.editor_place,
    )


_NODES = (("n1", 2), ("n2", 2))

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "MASTER_ADDR is the second node of the list": (
            sample_config_facts(source="slurm", machines=_NODES, master_addr="n2"),
            "MASTER_ADDR is n2, but rank 0 runs on n1, the first node of the list",
        )
    },
    silent_on={
        "MASTER_ADDR is the first node, by its full name": sample_config_facts(
            source="slurm", machines=_NODES, master_addr="n1.cluster"
        ),
        "MASTER_ADDR is the first node's name on another interface (`n1-ib`)": sample_config_facts(
            source="slurm", machines=_NODES, master_addr="n1-ib"
        ),
        "MASTER_ADDR is an IP address, whose node is not known": sample_config_facts(
            source="slurm", machines=_NODES, master_addr="10.0.0.1"
        ),
    },
)
