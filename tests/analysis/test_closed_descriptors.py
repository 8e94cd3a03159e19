"""A crash beside an exit code makes the code no certain cause."""

from __future__ import annotations

from allaboard.analysis.failures.failure_causality import crash_beside, order_failures
from allaboard.facts import Certainty
from allaboard.facts.samples import ended_member, sample_job
from allaboard.rules.exit003_bad_exit_code import RULE

GLOO = "what():  [enforce fail at /p/gloo/transport/tcp/loop.cc:212] nfds != -1. -1 vs -1"


def test_who_closed_its_connections_is_the_cause_though_it_ended_last() -> None:
    first = ended_member(0, ended_at=93.0, code=1)
    culprit = ended_member(1, ended_at=94.5, signal=6, last_line=GLOO)
    order = order_failures(sample_job(first, culprit))
    assert order.root_failures == (culprit,) and order.consequences == (first,)


def test_an_exit_code_beside_any_other_crash_is_likely_only() -> None:
    exited = ended_member(0, ended_at=93.0, code=1)
    crashed = ended_member(1, ended_at=93.5, signal=6, last_line="free(): invalid pointer")
    (claim,) = RULE.check(sample_job(exited, crashed))
    assert claim.certainty is Certainty.LIKELY
    assert "worker 1 was killed by SIGABRT" in str(claim.evidence[-1])
    (claim,) = RULE.check(sample_job(exited))
    assert claim.certainty is Certainty.CERTAIN


def test_a_crash_long_after_is_another_matter() -> None:
    exited = ended_member(0, ended_at=80.0, code=1)
    late = ended_member(1, ended_at=93.0, signal=11)
    ours = ended_member(2, ended_at=80.5, signal=6, ours=True)
    assert crash_beside(sample_job(exited, late, ours), exited) is None
