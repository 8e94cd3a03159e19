"""Who only serves may be ended when the training is done; who trains may not."""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.task_roles import nobody_trains
from allaboard.facts import Member, Op
from allaboard.facts.samples import ended_member, sample_job, sample_member


def of(one: Member, name: str) -> Member:
    return msgspec.structs.replace(one, who=msgspec.structs.replace(one.who, job=name))


def test_servers_and_evaluators_and_workers_that_only_join() -> None:
    joined = sample_member(1, op=Op("Server.join", 1, 50.0))
    assert nobody_trains(
        sample_job(of(sample_member(0), "ps"), joined, of(sample_member(2), "evaluator"))
    )
    assert nobody_trains(sample_job(of(sample_member(0), "ps"), ended_member(1, 0)))


def test_a_worker_that_trains_beside_a_server() -> None:
    assert not nobody_trains(sample_job(of(sample_member(0), "ps"), sample_member(1)))
