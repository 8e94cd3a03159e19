"""The init_method is not a URL that torch.distributed can use.

## Why it matters
`tcp://` without a port fails. `file://relative/path` is read as host `relative` and file `/path`, which
then may not exist: PyTorch retries forever, and ignores its timeout there.

## What to do
Use `tcp://HOST-OF-RANK-0:29500`, `file:///absolute/path/on/a/shared/disk` (three slashes), or `env://`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.config_problems import problem_claims
from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Origin, Problem, sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    yield from problem_claims(
        facts.problems,
        "init_url",
        who=own_member(facts.spec),
        summary=lambda problem: f"the init URL {problem.message}",
    )


_NO_PORT = Problem(
    kind="init_url",
    message="has no port",
    observed="tcp://node0",
    correction="tcp://node0:29500",
    origin=Origin(flag="init_process_group(init_method=)", file="train.py", line=9, column=40),
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a `tcp://` URL without a port": (
            sample_config_facts(problems=(_NO_PORT,)),
            "the init URL has no port",
        )
    },
    silent_on={
        "a `tcp://` URL with host and port": sample_config_facts(
            init_url="tcp://node0:29500", source="init_url"
        )
    },
)
