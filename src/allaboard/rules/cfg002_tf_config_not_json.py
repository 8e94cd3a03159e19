"""TF_CONFIG is not JSON.

## Why it matters
TensorFlow reads TF_CONFIG with `json.loads` when the strategy is built, and fails with a JSONDecodeError
that never mentions TF_CONFIG. The other workers silently wait for this one. Most often it is a Python dict
that was printed instead of `json.dumps`, a comma before a closing bracket, or quotes that a shell or a YAML
file ate.

## What to do
Paste the corrected text. In scripts write `os.environ["TF_CONFIG"] = json.dumps({...})`; in shells put the
JSON in single quotes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import own
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Evidence, Origin, Problem, Stage, facts_of


def check(facts: ConfigFacts) -> Iterator[Claim]:
    for problem in facts.problems:
        if problem.kind == "tf_config.json":
            yield Claim(
                summary=f"{problem.origin.variable or 'TF_CONFIG'} is not JSON: {problem.said}",
                who=own(facts.spec),
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=_written(facts, problem),
                where=problem.origin.place,
            )


def _written(facts: ConfigFacts, problem: Problem) -> str:
    """The right text in the form of the place where it is to stand."""
    right, file = problem.correction, problem.origin.file
    name = problem.origin.variable or "TF_CONFIG"
    if file and not problem.origin.variable:
        return right
    if file.endswith(".py"):
        return f'os.environ["{name}"] = json.dumps({right})'
    if file.endswith((".yaml", ".yml")):
        return f"{'value' if facts.workload else name}: {shlex.quote(right)}"
    return f"export {name}={shlex.quote(right)}"


_QUOTE = Problem(
    kind="tf_config.json",
    said="a single quote; JSON strings stand in double quotes",
    observed="'cluster': {}}",
    correction='{"cluster": {}}',
    origin=Origin(variable="TF_CONFIG", line=1, column=2),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a Python dict": (
            facts_of(problems=(_QUOTE,)),
            "TF_CONFIG is not JSON: a single quote; JSON strings stand in double quotes",
        )
    },
    silent_on={"a cluster": facts_of(cluster={"worker": ["a:1", "b:1"]}, task=("worker", 0))},
    since="0.1",
    drill=("tf-config-comma",),
)
