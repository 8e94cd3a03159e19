"""Problems that the reader of TF_CONFIG found: each rule reports one kind of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Origin, Problem, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts


def _rule(
    page: str,
    case: str,
    example: Problem,
    summary: Callable[[Problem], str],
    silent_on: Mapping[str, ConfigFacts],
    fix: Callable[[ConfigFacts, Problem], str] = lambda facts, problem: problem.correction,
    severity: Severity = Severity.ERROR,
    drill: tuple[str, ...] = (),
    certainty: Certainty = Certainty.CERTAIN,
) -> Rule[ConfigFacts]:
    """Return the rule that reports problems of the kind of this example."""

    def check(facts: ConfigFacts) -> Iterator[Claim]:
        yield from problem_claims(
            facts.problems,
            example.kind,
            certainty,
            severity,
            own_member(facts.spec),
            summary,
            lambda problem: fix(facts, problem),
        )

    return Rule(
        page=page,
        reads=ConfigFacts,
        check=check,
        fires_on={case: (sample_config_facts(problems=(example,)), summary(example))},
        silent_on=silent_on,
        drill=drill,
        unstaged="" if drill else "read from configuration: the corpus in tests/corpus stages it",
    )


def _corrected_text(facts: ConfigFacts, problem: Problem) -> str:
    """Return the corrected TF_CONFIG, written as the language of its file wants it."""
    corrected, file = problem.correction, problem.origin.file
    name = problem.origin.variable or "TF_CONFIG"
    if file and not problem.origin.variable:
        return corrected
    if file.endswith(".py"):
        return f'os.environ["{name}"] = json.dumps({corrected})'
    if file.endswith((".yaml", ".yml")):
        return f"{'value' if facts.workload else name}: {shlex.quote(corrected)}"
    return f"export {name}={shlex.quote(corrected)}"


RULES = {
    "cfg002_tf_config_not_json": _rule(
        page="""TF_CONFIG is not JSON.

## Why it matters
TensorFlow reads TF_CONFIG with `json.loads` when the strategy is built, and fails with a JSONDecodeError
that never mentions TF_CONFIG. The other workers silently wait for this one. Most often it is a Python dict
that was printed instead of `json.dumps`, a comma before a closing bracket, or quotes that a shell or a YAML
file ate.

## What to do
Paste the corrected text. In scripts write `os.environ["TF_CONFIG"] = json.dumps({...})`; in shells put the
JSON in single quotes.
""",
        case="TF_CONFIG is a Python dict in single quotes",
        example=Problem(
            kind="tf_config.json",
            message="a single quote; JSON strings stand in double quotes",
            observed="'cluster': {}}",
            correction='{"cluster": {}}',
            origin=Origin(variable="TF_CONFIG", line=1, column=2),
        ),
        summary=lambda p: f"{p.origin.variable or 'TF_CONFIG'} is not JSON: {p.message}",
        silent_on={
            "a TF_CONFIG with a cluster and a task": sample_config_facts(
                cluster={"worker": ["a:1", "b:1"]}, task=("worker", 0)
            )
        },
        fix=_corrected_text,
        drill=("tf-config-comma",),
    ),
    "cfg003_tf_config_shape": _rule(
        page="""TF_CONFIG is JSON, but not in the form that TensorFlow reads.

## Why it matters
A missing `cluster` does not fail: the worker silently trains alone, with exit code 0. A missing `task`, a
job that is a string instead of a list, or a key that appears twice (JSON readers keep the last one) fail
late, with messages that do not name TF_CONFIG, or make the others hang.

## What to do
Bring the part named into the form shown: `cluster` maps each job to a list of `host:port`, and `task` holds
this process's `type` and `index`.
""",
        case="the workers are one string instead of a list",
        example=Problem(
            kind="tf_config.shape",
            message="cluster.worker is one string, not a list",
            observed="host0:2222",
            correction='"worker": ["host0:2222"]',
            origin=Origin(variable="TF_CONFIG", key="cluster.worker", line=1, column=24),
        ),
        summary=lambda p: f"{p.origin.variable or 'TF_CONFIG'} {p.message}",
        silent_on={
            "a list with a single worker": sample_config_facts(
                cluster={"worker": ["a:2222"]}, task=("worker", 0)
            )
        },
    ),
    "cfg029_index_is_text": _rule(
        page="""The task's index in TF_CONFIG is a string.

## Why it matters
TensorFlow converts it, so training starts. But a script that compares it itself
(`tf_config["task"]["index"] == 0`) finds it unequal on every worker: then no worker is the chief, and none
saves.

## What to do
Write the number without quotes.
""",
        case="the index is a string in quotes",
        example=Problem(
            kind="tf_config.index",
            message='task.index is the string "0"',
            observed='"0"',
            correction='"index": 0',
            origin=Origin(variable="TF_CONFIG", key="task.index", line=1, column=70),
        ),
        summary=lambda p: f"TF_CONFIG's {p.message}; TensorFlow converts it, scripts often do not",
        silent_on={
            "the index is a number": sample_config_facts(
                cluster={"worker": ["a:1"]}, task=("worker", 0)
            )
        },
        severity=Severity.INFO,
    ),
    "cfg052_contrib_learn_alone": _rule(
        page="""A script reads TF_CONFIG by tf.contrib.learn, and TF_CONFIG lacks "environment": "cloud".

## Why it matters
The RunConfig of tf.contrib.learn (TensorFlow 1) takes a missing `environment` for `local`: each member then
trains its own model, without a message. tf.estimator and TF2 ignore that key. With tf.contrib.learn the chief
is called `master`, so that name is right there.

## What to do
Add `"environment": "cloud"` beside `cluster` and `task`, on every member.
""",
        case="TF_CONFIG has no `environment`, and tf.contrib.learn reads it",
        example=Problem(
            kind="contrib_learn",
            message='TF_CONFIG has no "environment": tf.contrib.learn then trains alone',
            observed="config = tf.contrib.learn.RunConfig()",
            correction='"environment": "cloud"',
            origin=Origin(file="tf_config.json", line=1, column=2),
        ),
        summary=lambda p: p.message,
        silent_on={
            "a TF_CONFIG that tf.contrib.learn does not read": sample_config_facts(
                cluster={"worker": ["a:1", "b:1"]}, task=("worker", 0)
            )
        },
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    ),
}
