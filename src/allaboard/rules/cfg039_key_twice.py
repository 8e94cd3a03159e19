"""A manifest has a key twice in one mapping.

## Why it matters
YAML forbids it, and most readers silently take the last one: a `replicas` or an `env` list that somebody
edited has no effect, because another one stands further down.

## What to do
Merge the two. Strict readers refuse the document: `kubectl apply --validate=strict`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import told
from allaboard.contracts import Rule
from allaboard.facts import Claim, ManifestFacts, Origin, Problem, Stage


def check(facts: ManifestFacts) -> Iterator[Claim]:
    yield from told(facts.problems, "manifest.twice")


_REPLICAS = Problem(
    kind="manifest.twice",
    said="the key 'replicas' appears twice in one mapping: the first one is ignored",
    observed="replicas: again",
    correction="one 'replicas', with what both say",
    origin=Origin(key="replicas", file="job.yaml", line=9, column=7),
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ManifestFacts,
    check=check,
    fires_on={
        "replicas": (
            ManifestFacts(problems=(_REPLICAS,)),
            "the key 'replicas' appears twice in one mapping: the first one is ignored",
        )
    },
    silent_on={"nothing": ManifestFacts()},
    since="0.1",
    unstaged="read from configuration: the corpus in tests/corpus stages it",
)
