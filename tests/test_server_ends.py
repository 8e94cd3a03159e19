"""A job with parameter servers is done when those that train are done."""

from __future__ import annotations

from typing import Any

import msgspec

from allaboard.analysis.parameter_servers.task_roles import leftover_members, only_serves
from allaboard.facts import Exit, Member, Op, Outcome, Who
from allaboard.facts.samples import sample_declaration, sample_job, sample_member
from allaboard.policy.end.end_policy import EndPolicy
from allaboard.policy.end.verdict import end_verdict

JOIN = Op("Server.join", 1, 60.0)


def task(name: str, index: int, pid: int, **changes: Any) -> Member:
    return sample_member(0, who=Who(job=name, index=index, host="a", pid=pid), **changes)


def done(at: float = 99.0, code: int = 0) -> Exit:
    return Exit(ended_at=at, code=code)


PS = task("ps", 0, 201, op=JOIN)


def test_tf1_ends_when_the_last_worker_is_done() -> None:
    one, two = task("worker", 0, 101, exit=done()), task("worker", 1, 102)
    assert leftover_members(sample_job(one, two, PS)) == ()
    view = sample_job(one, task("worker", 1, 102, exit=done()), PS)
    found = end_verdict(view, (), (), EndPolicy())
    assert found is not None and found.outcome is Outcome.COMPLETED
    assert "worker 0, worker 1 ended with exit code 0" in found.reason and "ps 0" in found.reason


def test_tf2_ends_when_the_chief_is_done() -> None:
    workers = [task("worker", i, 101 + i, op=JOIN) for i in range(2)]
    assert only_serves(workers[0])
    view = sample_job(task("chief", 0, 100, exit=done()), *workers, PS)
    assert [m.who.pid for m in leftover_members(view)] == [101, 102, 201]
    running = sample_job(task("chief", 0, 100), *workers, PS)
    assert end_verdict(running, (), (), EndPolicy()) is None


def test_a_chief_that_failed_is_no_end_of_the_work() -> None:
    view = sample_job(task("chief", 0, 100, exit=done(90.0, code=1)), PS)
    found = end_verdict(view, (), (), EndPolicy())
    assert leftover_members(view) == () and found is not None and found.outcome is Outcome.FAILED


def test_who_only_watches_ends_no_server() -> None:
    view = sample_job(task("worker", 0, 101, exit=done()), PS)
    assert end_verdict(view, (), (), EndPolicy(only_observes=True)) is None


def test_an_evaluator_gets_time_for_the_last_checkpoint() -> None:
    work, evaluator = task("worker", 0, 101, exit=done(99.0)), task("evaluator", 0, 300)
    assert end_verdict(sample_job(work, PS, evaluator), (), (), EndPolicy()) is None
    late = sample_job(work, PS, evaluator, now=170.0)
    assert end_verdict(late, (), (), EndPolicy()) is not None


def test_a_job_without_servers_is_not_concerned() -> None:
    assert (
        leftover_members(sample_job(task("worker", 0, 101, exit=done()), task("worker", 1, 102)))
        == ()
    )


def chief(pid: int = 100) -> Member:
    told = sample_declaration(0, job="chief", call="ParameterServerStrategy")
    return task("chief", 0, pid, declared=told)


def test_tf2s_chief_goes_on_without_a_worker() -> None:
    lost = task("worker", 1, 102, op=JOIN, exit=Exit(ended_at=90.0, signal=9))
    left = task("worker", 0, 101, op=JOIN)
    assert end_verdict(sample_job(chief(), left, lost, PS), (), (), EndPolicy()) is None
    over = msgspec.structs.replace(chief(), exit=done())
    found = end_verdict(sample_job(over, left, lost, PS), (), (), EndPolicy())
    assert found is not None and found.outcome is Outcome.COMPLETED


def test_without_any_worker_or_without_its_chief_the_job_ends() -> None:
    lost = task("worker", 1, 102, op=JOIN, exit=Exit(ended_at=90.0, signal=9))
    left = task("worker", 0, 101, op=JOIN)
    for view in (
        sample_job(chief(), lost, PS),
        sample_job(msgspec.structs.replace(chief(), exit=done(91.0, code=1)), left, lost, PS),
        sample_job(task("worker", 0, 101), msgspec.structs.replace(lost, op=None), PS),
    ):
        found = end_verdict(view, (), (), EndPolicy())
        assert found is not None and found.outcome is Outcome.FAILED
