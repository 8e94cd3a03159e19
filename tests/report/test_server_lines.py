"""The lines that a job with parameter servers ends with."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.agent.final_report import assemble_report
from allaboard.facts import Load, Outcome, Pair
from allaboard.facts.samples import ps_member, sample_job, sample_member
from allaboard.report.servers import MAX_SHOWN_TASKS, format_bytes, server_lines

PAIR = Pair(task="ps:0", received_all=26_900_000, sent_all=13_500_000, rtt=0.0123)
WORKER = ps_member(
    "worker", 0, run=Load(span=12, cpu=0.25, operation_share=0.95, allowed=2), pairs=(PAIR,),
    notes={"placed on ps:0": "14 variables, 57700 bytes"},
)  # fmt: skip
PS = ps_member("ps", 0, run=Load(span=20, cpu=0.5, allowed=2))


def lines(*members: object) -> list[str]:
    report = assemble_report(
        job="j", command=(), outcome=Outcome.COMPLETED, reason="", code=0, started="", seconds=1,
        run_dir="", view=sample_job(*members), findings=(), notes=(),  # type: ignore[arg-type]
    )  # fmt: skip
    return server_lines(report)


def test_who_waited_for_whom() -> None:
    assert lines(WORKER, PS) == [
        "worker 0: of 12 s 70% waiting for servers (most for ps 0), 25% computing, "
        "5% in its own code; 26.9 MB in, 13.5 MB out, round trip to ps 0 12 ms",
        "ps 0: 0.50 of 2 cores; 14 variables, 57.7 kB",
    ]


def test_a_round_trip_that_was_not_measured_is_left_out() -> None:
    unmeasured = msgspec.structs.replace(WORKER, pairs=(msgspec.structs.replace(PAIR, rtt=0.0),))
    assert lines(unmeasured, PS)[0].endswith("; 26.9 MB in, 13.5 MB out")


def test_a_worker_of_a_chief_waits_for_its_work() -> None:
    serving = ps_member("worker", 0, serving=True, run=Load(span=42, cpu=0.1, allowed=2))
    (line,) = lines(serving)
    assert line == "worker 0: of 42 s 90% waiting for work from the chief, 10% computing"


def test_a_limit_that_came_late() -> None:
    late = ps_member("ps", 0, run=Load(span=20, cpu=0.07, allowed=0.05))
    assert lines(WORKER, late)[1].startswith("ps 0: 0.07 cores, at the end 0.05 at most;")


def test_a_job_without_servers_has_none() -> None:
    assert (
        lines(
            sample_member(0, run=Load(span=12, cpu=1, operation_share=0.5, allowed=2)),
            sample_member(1),
        )
        == []
    )


def test_of_many_tasks_the_first_are_told() -> None:
    many = [msgspec.structs.replace(WORKER, worker=i) for i in range(20)]
    found = lines(*many, PS)
    assert len(found) == MAX_SHOWN_TASKS + 1 and found[-1] == "13 more tasks: see report.json"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (57_700, "57.7 kB"), (2.5e9, "2.5 GB"), (3e15, "3000 TB")],
)
def test_sizes(count: float, text: str) -> None:
    assert format_bytes(count) == text
