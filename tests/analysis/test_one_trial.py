"""One trial of a link that failed proves nothing that a job may be ended for."""

from __future__ import annotations

import pytest

from allaboard.analysis.network.link_faults import example_failed_link, example_four_hosts
from allaboard.contracts import Rule
from allaboard.facts import Answer, Certainty, JobView
from allaboard.rules import net006_link_blocked, net007_large_lost

AWAY = ((0, 2), (1, 2), (3, 2), (2, 0), (2, 1), (2, 3))
HALVES = tuple((a, b) for a in range(4) for b in range(4) if (a < 2) != (b < 2))
LINK = ((1, 3), (3, 1))


@pytest.mark.parametrize("where", [AWAY, HALVES, LINK])
@pytest.mark.parametrize(
    ("rule", "answer"),
    [(net006_link_blocked.RULE, Answer.SILENT), (net007_large_lost.RULE, Answer.CUT)],
)
def test_a_second_trial_makes_it_certain(
    rule: Rule[JobView], answer: Answer, where: tuple[tuple[int, int], ...]
) -> None:

    for tries, certainty in ((2, Certainty.CERTAIN), (1, Certainty.LIKELY)):
        (claim,) = rule.check(
            example_four_hosts(*(example_failed_link(a, b, answer, tries=tries) for a, b in where))
        )
        assert claim.certainty is certainty


def test_one_link_that_was_tried_once_leaves_it_open() -> None:
    links = [example_failed_link(a, b, Answer.SILENT, tries=1 if a == 0 else 2) for a, b in AWAY]
    (claim,) = net006_link_blocked.RULE.check(example_four_hosts(*links))
    assert claim.certainty is Certainty.LIKELY
