"""Who only serves may be ended when the training is done; who trains may not."""

from __future__ import annotations

import msgspec

from allaboard.analysis.parameter_servers.parameter_servers import only_serve
from allaboard.facts import Member, Op
from allaboard.facts.samples import ended, job, member


def of(one: Member, name: str) -> Member:
    return msgspec.structs.replace(one, who=msgspec.structs.replace(one.who, job=name))


def test_servers_and_evaluators_and_workers_that_only_join() -> None:
    joined = member(1, op=Op("Server.join", 1, 50.0))
    assert only_serve(job(of(member(0), "ps"), joined, of(member(2), "evaluator")))
    assert only_serve(job(of(member(0), "ps"), ended(1, 0)))


def test_a_worker_that_trains_beside_a_server() -> None:
    assert not only_serve(job(of(member(0), "ps"), member(1)))
