"""A file cannot be read as any kind of configuration.

## Why it matters
What cannot be read was not checked: if nothing is reported for such a file, that does not mean it is right.
The usual cases are binary files, UTF-16, truncated files, YAML whose aliases explode, and Windows line ends
in shell scripts. The last one makes every exported value end in an invisible carriage
return, so that no host name resolves.

A Python script that does not parse is judged as far as it can be read. A piece of a script, as pasted into a
question, is read as such, and this is only information.

## What to do
Look at the given position. `file NAME` shows what a file really contains. `sed -i 's/\\r$//' NAME` removes
Windows line ends. Leave a file of another kind out of the command.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Origin, Problem, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(
        facts.problems,
        "unreadable",
        summary=lambda problem: f"{problem.origin.file or facts.subject} {problem.message}",
    )
    yield from problem_claims(
        facts.problems,
        "unreadable.piece",
        severity=Severity.INFO,
        summary=lambda problem: f"{problem.origin.file or facts.subject} {problem.message}",
    )


_BINARY = Problem(
    kind="unreadable",
    message="is not UTF-8 text",
    observed="byte 0x80 at offset 0",
    correction="give a TF_CONFIG as UTF-8 text",
    origin=Origin(file="model.bin", line=1, column=1),
)
_PIECE = Problem(
    kind="unreadable.piece",
    message="is read as a piece of a script: unexpected indent",
    observed="start = 0",
    correction="python -m py_compile piece.py",
    origin=Origin(file="piece.py", line=1, column=5),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a binary file instead of text": (
            sample_config_facts(problems=(_BINARY,)),
            "model.bin is not UTF-8 text",
        ),
        "an indented excerpt from a Python script": (
            sample_config_facts(problems=(_PIECE,)),
            "piece.py is read as a piece of a script: unexpected indent",
        ),
    },
    silent_on={"an environment without any configuration": sample_config_facts()},
)
