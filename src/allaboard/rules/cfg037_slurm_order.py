"""TensorFlow's SlurmClusterResolver would number the tasks differently from Slurm.

## Why it matters
The resolver sorts the host names as text, and gives task n the n-th address. Slurm starts its tasks in the
order of the node list. If the two differ (`n9,n10`: as text, n10 comes first), every task takes itself for
another one, binds the wrong port or none, and all of them wait.

## What to do
Pass the order yourself: `allaboard spec --as tf_config` writes a TF_CONFIG in Slurm's order. Or name hosts
with leading zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Evidence, Severity, sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    slurm = facts.part_of_source("slurm")
    if slurm is None or len(slurm.machines) < 2 or facts.spec.framework in ("pytorch", "jax"):
        return
    names = [m.name.text for m in slurm.machines]
    order = sorted(names)
    if names == order:
        return
    index = next(i for i, (a, b) in enumerate(zip(names, order, strict=True)) if a != b)
    yield Claim(
        summary=f"SlurmClusterResolver would take {order[index]} for host {index}, which in Slurm is "
        f"{names[index]}; this matters to TensorFlow only",
        who=own_member(facts.spec),
        evidence=(slurm.machines[0].name.evidence, Evidence(",".join(order[:6]), "sorted as text")),
        fix="allaboard spec --as tf_config",
        severity=Severity.INFO,
        where=slurm.machines[0].name.origin.editor_place,
    )


def _facts(*names: str, framework: str = "") -> ConfigFacts:
    machines = tuple((name, 1) for name in names)
    return sample_config_facts(source="slurm", machines=machines, framework=framework)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "hosts n9 and n10, which sort differently as text": (
            _facts("n9", "n10"),
            "SlurmClusterResolver would take n10 for host 0, which in Slurm is n9; "
            "this matters to TensorFlow only",
        )
    },
    silent_on={
        "hosts n09 and n10, with leading zeros": _facts("n09", "n10"),
        "a PyTorch job on hosts n9 and n10": _facts("n9", "n10", framework="pytorch"),
    },
)
