"""What a reader of configuration met, told as it said it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.facts import Certainty, Claim, Evidence, Problem


def told(
    problems: Iterable[Problem], kind: str, certainty: Certainty = Certainty.CERTAIN
) -> Iterator[Claim]:
    """Every problem of this kind, with its place and correction."""
    for problem in problems:
        if problem.kind == kind:
            yield Claim(
                summary=problem.said,
                evidence=(Evidence(problem.observed, str(problem.origin)),),
                fix=problem.correction,
                certainty=certainty,
                where=problem.origin.place,
            )
