"""Claims about problems that a reader of configuration met, in its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from allaboard.facts import Certainty, Claim, Evidence, Problem, Severity, Who


def problem_claims(
    problems: Iterable[Problem],
    kind: str,
    certainty: Certainty = Certainty.CERTAIN,
    severity: Severity = Severity.ERROR,
    who: tuple[Who, ...] = (),
    summary: Callable[[Problem], str] = lambda problem: problem.message,
    fix: Callable[[Problem], str] = lambda problem: problem.correction,
) -> Iterator[Claim]:
    """Yield a claim for every problem of this kind, with its place; ``summary`` and ``fix`` say it in other
    words than the reader of the configuration."""
    for problem in problems:
        if problem.kind == kind:
            yield Claim(
                summary=summary(problem),
                who=who,
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=fix(problem),
                certainty=certainty,
                severity=severity,
                where=problem.origin.editor_place,
            )
