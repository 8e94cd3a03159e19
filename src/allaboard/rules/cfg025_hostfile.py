"""A line of a hostfile is in no form that launchers read, or names a host twice.

## Why it matters
Open MPI, DeepSpeed and Horovod read `host slots=4`. A bare number, another word or a comma list is taken
for a host name, or ignored. A host that appears twice gets the slots of both lines from one launcher, and
is refused by another.

## What to do
Write one line per host, as shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Origin, Problem, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(
        facts.problems,
        "hostfile",
        summary=lambda problem: f"the hostfile's line {problem.origin.line} {problem.message}",
    )
    part = facts.part_of_source("hostfile")
    if part is None:
        return
    index_by_name: dict[str, int] = {}
    reported: set[str] = set()
    for index, machine in enumerate(part.machines):
        name = machine.name.text.lower()
        earlier = index_by_name.setdefault(name, index)
        # A host repeated without slots is Open MPI's older way of counting them.
        if (
            earlier == index
            or not machine.slots
            or not part.machines[earlier].slots
            or name in reported
        ):
            continue
        reported.add(name)
        earlier_machine = part.machines[earlier]
        total = earlier_machine.slots + machine.slots
        yield Claim(
            summary=f"the host {machine.name.text} is listed twice, with {earlier_machine.slots} and with "
            f"{machine.slots} slots",
            evidence=(earlier_machine.name.evidence, machine.name.evidence),
            fix=f"{machine.name.text} slots={total}   # or remove one of the two lines",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=machine.name.origin.editor_place,
        )


_BARE_NUMBER = Problem(
    kind="hostfile",
    message="has a bare number '4'",
    observed="node1 4",
    correction="node1 slots=4",
    origin=Origin(file="hosts", line=2, column=1),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a bare number of slots after the host's name": (
            sample_config_facts(problems=(_BARE_NUMBER,)),
            "the hostfile's line 2 has a bare number '4'",
        ),
        "one host on two lines with different slots": (
            sample_config_facts("hostfile", source="hostfile", machines=(("a", 4), ("a", 2))),
            "the host a is listed twice, with 4 and with 2 slots",
        ),
    },
    silent_on={
        "one line for each host, with its slots": sample_config_facts(
            "hostfile", source="hostfile", machines=(("a", 4), ("b", 4))
        ),
        "one line for each process, without slots": sample_config_facts(
            "hostfile", source="hostfile", machines=(("a", 0), ("a", 0))
        ),
    },
)
