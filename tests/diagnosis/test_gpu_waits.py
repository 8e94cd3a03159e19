"""A hang of NCCL that is examined from outside: no black box, and the rank that waits polls for its GPU."""

from __future__ import annotations

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.facts import Frame, HostLook, Member, Present
from allaboard.facts.samples import NOW, sample_member, sample_stack

ITEM = Frame("/home/u/train.py", 58, "reduce_metrics", "return total.item()")
SLEEP = Frame("/home/u/train.py", 63, "inject", "time.sleep(300)")
LOOP = Frame("/home/u/train.py", 70, "evaluate", "score = compare(left, right)")


def rank(number: int, frame: Frame, cpu: float) -> Present:
    member: Member = sample_member(
        number, stack=sample_stack(frame, samples=24), cpu=cpu, ops=0, step=0, framework="torch"
    )
    return Present(member=member, variables={"RANK": str(number), "WORLD_SIZE": "2"})


def diagnose(*ranks: Present) -> tuple[list[str], list[str]]:
    diagnosis = diagnose_processes((HostLook(host="node-a", now=NOW, present=ranks),))
    return [f.summary for f in diagnosis.findings], list(diagnosis.told)


def test_the_rank_that_sleeps_is_named_and_what_the_other_waits_for() -> None:
    found, told = diagnose(rank(0, ITEM, 2.0), rank(1, SLEEP, 0.0))
    assert found == ["worker 1 is asleep at train.py:63 in inject; the others wait for it"]
    assert "waiting for a result of its GPU at train.py:58" in told[0]


def test_nobody_is_named_while_the_other_rank_computes() -> None:
    assert diagnose(rank(0, ITEM, 2.0), rank(1, LOOP, 1.0))[0] == []


def test_a_rank_in_python_of_its_own_waits_for_nobody() -> None:
    assert diagnose(rank(0, LOOP, 1.0), rank(1, SLEEP, 0.0))[0] == []
