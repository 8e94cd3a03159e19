"""Makes a rule on scripts from its page, its function and its examples as plain texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from allaboard.contracts import Rule
from allaboard.facts import Claim, ScriptFacts, Stage


def script_rule(
    page: str,
    check: Callable[[ScriptFacts], Iterator[Claim]],
    fires_on: Mapping[str, tuple[str, str]],
    silent_on: Mapping[str, str],
) -> Rule[ScriptFacts]:
    """Return the rule; ``fires_on`` and ``silent_on`` are scripts, ``fires_on`` with the summary."""
    return Rule(
        page=page,
        stage=Stage.CONFIG,
        reads=ScriptFacts,
        check=check,
        fires_on={
            name: (ScriptFacts(source=source), summary)
            for name, (source, summary) in fires_on.items()
        },
        silent_on={name: ScriptFacts(source=source) for name, source in silent_on.items()},
        since="0.1",
        unstaged="read from the script by its syntax tree: tests/scripts stages it",
    )
