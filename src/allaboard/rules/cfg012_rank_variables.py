"""RANK, WORLD_SIZE, MASTER_ADDR or MASTER_PORT is missing, or is not a number.

## Why it matters
`init_process_group` without arguments needs all four. If one is missing, this process fails at once with
the variable's name; its peers learn nothing and wait up to half an hour. Under Slurm, MPI or torchrun the
numbers come from elsewhere, and nothing is reported here.

## What to do
Export what is missing, or start the script with `torchrun` or `allaboard run`, which set all four.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts

_NUMBER_FIELDS = {
    "rank": ("RANK", "0"),
    "world_size": ("WORLD_SIZE", "2"),
    "local_rank": ("LOCAL_RANK", "0"),
    "local_world_size": ("LOCAL_WORLD_SIZE", "1"),
}
_ENV_RENDEZVOUS = {
    "RANK": "0",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "HOST-OF-RANK-0",
    "MASTER_PORT": "29500",
}
_OTHER_SOURCES = ("slurm", "mpi", "init_url", "jax", "sagemaker", "torchrun", "kubernetes")


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for field, (_, example) in _NUMBER_FIELDS.items():
        for part in facts.parts:
            value = part.values.get(field)
            if value is None or value.integer is not None or part.layer == "allocation":
                continue
            if not value.text:
                continue  # set, but to a value that only a run can tell
            name = value.origin.name or field
            yield Claim(
                summary=f"{name} is {value.text!r}, which is not a whole number",
                who=own_member(facts.spec),
                evidence=(value.evidence,),
                fix=value.origin.assignment_of(example),
                where=value.origin.editor_place,
            )
    if facts.kind == "environment":
        yield from _check_missing(facts)


def _check_missing(facts: ConfigFacts) -> Iterator[Claim]:
    part = facts.part_of_source("torch_env")
    if part is None or any(facts.part_of_source(source) is not None for source in _OTHER_SOURCES):
        return
    # torch takes an empty variable for one that is not set.
    present = [n for n in _ENV_RENDEZVOUS if n in facts.opaque or _variable_text(facts, n)]
    absent = [n for n in _ENV_RENDEZVOUS if n not in present]
    if not absent or not {"RANK", "WORLD_SIZE"} & set(present):
        return
    # WORLD_SIZE alone is a name that other programs use too.
    if len(present) == 1:
        return
    node_number = _node_number(facts) if absent == ["RANK"] else None
    if node_number is not None:
        name, rank = node_number
        yield Claim(
            summary=f"RANK is not set, but {name} is {rank}: init_process_group reads RANK",
            who=own_member(facts.spec),
            evidence=(
                facts.variables[name].evidence,
                *(facts.variables[n].evidence for n in present if n in facts.variables),
            ),
            fix=f"export RANK={rank}   # for one process per host; start several with torchrun",
            severity=Severity.ERROR,
            certainty=Certainty.LIKELY,
        )
        return
    yield Claim(
        summary=f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} not set, "
        f"but {', '.join(present)} {'is' if len(present) == 1 else 'are'}",
        who=own_member(facts.spec),
        evidence=tuple(
            facts.variables[n].evidence if n in facts.variables else Evidence("set", n)
            for n in present
        ),
        fix="export " + " ".join(f"{n}={_ENV_RENDEZVOUS[n]}" for n in absent),
        # The meeting point may be in the call: init_method="tcp://HOST:PORT".
        severity=Severity.WARNING if {"RANK", "WORLD_SIZE"} <= set(present) else Severity.ERROR,
        certainty=Certainty.LIKELY,
    )


def _node_number(facts: ConfigFacts) -> tuple[str, str] | None:
    """Return the variable that numbers this host, and its number; None if there is none."""
    names = (n for n in ("NODE_RANK", "GROUP_RANK") if _variable_text(facts, n).isdecimal())
    return next(((n, _variable_text(facts, n)) for n in names), None)


def _variable_text(facts: ConfigFacts, name: str) -> str:
    value = facts.variables.get(name)
    return value.text.strip() if value is not None else ""


def _environment(**values: str) -> ConfigFacts:
    fields = {name.lower(): text for name, text in values.items()}
    return sample_config_facts(source="torch_env", variables=values, values=fields)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "RANK is a word instead of a number": (
            _environment(RANK="one", WORLD_SIZE="2", MASTER_ADDR="a", MASTER_PORT="29500"),
            "RANK is 'one', which is not a whole number",
        ),
        "NODE_RANK is set instead of RANK": (
            _environment(NODE_RANK="2", WORLD_SIZE="4", MASTER_ADDR="a", MASTER_PORT="29500"),
            "RANK is not set, but NODE_RANK is 2: init_process_group reads RANK",
        ),
        "WORLD_SIZE is missing, and the other three variables are set": (
            _environment(RANK="0", MASTER_ADDR="a", MASTER_PORT="29500"),
            "WORLD_SIZE is not set, but RANK, MASTER_ADDR, MASTER_PORT are",
        ),
    },
    silent_on={
        "all four variables are set": _environment(
            RANK="0", WORLD_SIZE="2", MASTER_ADDR="a", MASTER_PORT="29500"
        ),
        "MASTER_ADDR and MASTER_PORT alone, as before a torchrun": _environment(
            MASTER_ADDR="a", MASTER_PORT="29500"
        ),
        "WORLD_SIZE alone, which some other program may have set": _environment(WORLD_SIZE="2"),
    },
)
