"""Claims about problems that a reader of configuration met, in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.facts import Certainty, Claim, Evidence, Problem


def problem_claims(
    problems: Iterable[Problem], kind: str, certainty: Certainty = Certainty.CERTAIN
) -> Iterator[Claim]:
    """Yield a claim for every problem of this kind, with its place and correction."""
    for problem in problems:
        if problem.kind == kind:
            yield Claim(
                summary=problem.message,
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                certainty=certainty,
                where=problem.origin.editor_place,
            )
