"""Two sources say different things about the same value.

## Why it matters
A process follows one of them: an argument overrides the environment, and what a launcher sets overrides
what a script exported. A member that follows the other one waits somewhere else, or under another identity.

## What to do
Remove one of the two, or make them say the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Conflict, Origin, Severity, Value
from allaboard.facts.configuration.config_facts import sample_config_facts

_MAX_REPORTED = 10
_ENV_RENDEZVOUS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables that PyTorch's env:// cannot do without: never advise to unset one of them."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for conflict in facts.spec.conflicts[:_MAX_REPORTED]:
        used, ignored = conflict.used, conflict.overruled
        yield Claim(
            summary=f"{conflict.field.replace('_', ' ')}: {_source_name(used)} says {used.text!r} "
            f"and is used; {_source_name(ignored)} says {ignored.text!r}",
            who=own_member(facts.spec),
            evidence=(used.evidence, ignored.evidence),
            fix=_fix(used, ignored),
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=ignored.origin.editor_place or used.origin.editor_place,
        )


def _source_name(value: Value) -> str:
    return value.origin.variable or value.origin.flag or str(value.origin)


def _fix(used: Value, ignored: Value) -> str:
    name = ignored.origin.variable
    if name in _ENV_RENDEZVOUS and used.origin.variable and not used.origin.key:
        return f"export {name}=${used.origin.variable}   # PyTorch's env:// reads {name} alone"
    if name and not ignored.origin.key:
        return f"unset {ignored.origin.variable}, or export {ignored.origin.variable}={used.text}"
    return f"write {used.text} at {ignored.origin}"


def _facts(used: Value, ignored: Value) -> ConfigFacts:
    facts = sample_config_facts(rank=used.text)
    spec = msgspec.structs.replace(facts.spec, conflicts=(Conflict("rank", used, ignored),))
    return msgspec.structs.replace(facts, spec=spec)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "the script passes rank 0, and RANK in the environment is 1": (
            _facts(
                Value("0", Origin(flag="init_process_group(rank=)", file="train.py", line=3)),
                Value("1", Origin(variable="RANK")),
            ),
            "rank: init_process_group(rank=) says '0' and is used; RANK says '1'",
        ),
        "Open MPI's variable says rank 1, and RANK says 0": (
            _facts(
                Value("1", Origin(variable="OMPI_COMM_WORLD_RANK")),
                Value("0", Origin(variable="RANK")),
            ),
            "rank: OMPI_COMM_WORLD_RANK says '1' and is used; RANK says '0'",
        ),
    },
    silent_on={"only one source gives the rank": sample_config_facts(rank="0")},
)
