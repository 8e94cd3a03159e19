"""For how long processes have stood still that are examined from outside."""

from __future__ import annotations

import msgspec
import pytest

from allaboard.analysis.stalls.examined_duration import (
    silence_between,
    unanswered_time,
    unchanged_time,
)
from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.facts import (
    ATTACHED,
    Awaited,
    Frame,
    HostLook,
    Member,
    Phase,
    Present,
    Socket,
    Stack,
    Who,
)

BACKWARD = Frame("/site-packages/torch/autograd/graph.py", 1, "_engine_run_backward")
READS = Frame("/usr/lib/python3.11/socket.py", 706, "readinto")
WAITS = Frame("/usr/lib/python3.11/subprocess.py", 1264, "wait")
SLEEPS = Frame("/home/u/train.py", 8, "rest", "time.sleep(600)")
OWN = Frame("/home/u/train.py", 9, "main", "fetch()")


def rank(
    number: int, *frames: Frame, sockets: tuple[Socket, ...] = (), moving: bool = False
) -> Present:
    who = Who(index=number, rank=number, host="h", pid=100 + number)
    stack = Stack(frames=(*frames, OWN), taken_at=10.0, samples=5, span=2.0, moving=moving)
    member = Member(who=who, worker=number, key=100 + number, phase=Phase.TRAINING, stack=stack)
    variables = {"RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}
    return Present(member=member, variables=variables, sockets=sockets)


def link(silent_s: float, *, reverse: bool = False) -> Socket:
    ends = ("10.0.0.1:5", "10.0.0.2:6")
    return Socket(*(ends[::-1] if reverse else ends), "ESTAB", silent_s=silent_s)


def asking(silent_s: float, asked_s: float) -> tuple[Present, Present]:
    """Rank 0 waits in a step for rank 1, which has asked a service."""
    asks = Socket("10.0.0.2:7", "10.0.0.9:443", "ESTAB", silent_s=asked_s)
    asker = rank(1, READS, sockets=(link(silent_s, reverse=True), asks))
    asker = msgspec.structs.replace(
        asker, awaits=(Awaited(local="10.0.0.2:7", remote="10.0.0.9:443"),)
    )
    return rank(0, BACKWARD, sockets=(link(silent_s),)), asker


def look(*present: Present, now: float = 12.0) -> HostLook:
    return HostLook(host="h", now=now, present=present)


def test_two_looks_that_find_everybody_at_one_place_show_the_time_between_them() -> None:
    first = look(rank(0, BACKWARD), rank(1, WAITS))
    assert unchanged_time([first], [msgspec.structs.replace(first, now=21.5)]) == 9.5


@pytest.mark.parametrize(
    "second",
    [
        look(rank(0, BACKWARD), rank(1, SLEEPS), now=21.5),
        look(rank(0, BACKWARD), rank(1, WAITS, moving=True), now=21.5),
        look(rank(0, BACKWARD), rank(2, WAITS), now=21.5),
        look(rank(0, BACKWARD), msgspec.structs.replace(rank(1, WAITS), starved=True), now=21.5),
        look(now=21.5),
    ],
    ids=["another place", "it moves", "another process", "it gets no core", "nobody"],
)
def test_who_was_elsewhere_or_may_move_has_not_stood_still(second: HostLook) -> None:
    assert unchanged_time([look(rank(0, BACKWARD), rank(1, WAITS))], [second]) == 0.0


def test_the_silence_between_ranks_is_that_of_their_least_silent_connection() -> None:
    assert silence_between(asking(300.0, 70.0)) == 300.0
    first, second = asking(300.0, 70.0)
    heartbeat = msgspec.structs.replace(
        first, sockets=(*first.sockets, Socket("10.0.0.1:8", "10.0.0.2:9", "ESTAB", silent_s=2.0))
    )
    answering = msgspec.structs.replace(
        second, sockets=(*second.sockets, Socket("10.0.0.2:9", "10.0.0.1:8", "ESTAB", silent_s=2.0))
    )
    assert silence_between((heartbeat, answering)) == 2.0


def test_no_silence_is_known_of_ranks_without_a_connection_or_a_time() -> None:
    assert silence_between(asking(0.0, 70.0)) == 0.0
    assert silence_between((*asking(300.0, 70.0), rank(2, BACKWARD))) == 0.0
    assert silence_between(()) == 0.0


def test_an_answer_has_been_awaited_since_the_last_data_went_to_either_side() -> None:
    assert unanswered_time(asking(300.0, 70.0)) == 70.0
    assert unanswered_time(asking(50.0, 70.0)) == 50.0


def test_a_silence_proves_nothing_of_a_rank_that_does_something_else() -> None:
    waiting, asker = asking(300.0, 300.0)
    asleep = rank(1, SLEEPS, sockets=asker.sockets)
    assert unanswered_time((waiting, asleep)) == 0.0
    unknown = msgspec.structs.replace(asker, awaits=())
    assert unanswered_time((waiting, unknown)) == 0.0
    assert unanswered_time((asker,)) == 0.0


LOOP = (
    Frame("/usr/lib/python3.11/selectors.py", 468, "select"),
    Frame("/usr/lib/python3.11/asyncio/base_events.py", 1884, "_run_once"),
)
GRPC = (Frame("/v/lib/python3.11/site-packages/grpc/_channel.py", 1160, "_blocking"),)
POOL = (Frame("/usr/lib/python3.11/multiprocessing/pool.py", 768, "wait"),)


@pytest.mark.parametrize(
    ("frames", "waited_s"),
    [
        pytest.param(LOOP, 70.0, id="an event loop"),
        pytest.param(GRPC, 70.0, id="gRPC, which reads in a thread"),
        pytest.param(POOL, 0.0, id="a pool, whose processes may be at work"),
    ],
)
def test_who_waits_without_showing_where_waits_at_all_of_its_connections(
    frames: tuple[Frame, ...], waited_s: float
) -> None:
    waiting, asker = asking(300.0, 70.0)
    hidden = rank(1, *frames, sockets=asker.sockets)
    assert unanswered_time((waiting, hidden)) == waited_s
    assert hidden.member.stack is not None
    stack = msgspec.structs.replace(hidden.member.stack, children=((4711, "python tool.py"),))
    member = msgspec.structs.replace(hidden.member, stack=stack)
    with_child = msgspec.structs.replace(hidden, member=member)
    assert unanswered_time((waiting, with_child)) == 0.0, "the child may be at work"


def test_an_event_loop_without_connections_to_others_waits_for_itself() -> None:
    waiting, asker = asking(300.0, 70.0)
    alone = rank(1, *LOOP, sockets=asker.sockets[:1])
    assert unanswered_time((waiting, alone)) == 300.0


def test_a_service_that_has_not_answered_for_a_minute_is_found() -> None:
    (finding,) = diagnose_processes([look(*asking(300.0, 70.0))]).findings
    assert finding.rule == "HANG005"
    assert [w.rank for w in finding.who] == [1]
    assert "waiting for the answer of another process at train.py:9 in main" in finding.summary


def test_a_service_that_takes_its_time_is_waited_for() -> None:
    answer = diagnose_processes([look(*asking(300.0, 20.0))], look_count=2, unchanged_s=9.5)
    assert not answer.findings
    assert answer.conclusion.startswith("waiting: worker 0 waits for worker 1, which stands still")
    assert "no data has passed between these ranks for 5 min" in answer.told


def test_the_silence_of_ranks_of_which_none_waits_is_not_shown() -> None:
    _, asker = asking(300.0, 20.0)
    busy = rank(0, SLEEPS, sockets=(link(300.0),))
    assert not any("no data" in line for line in diagnose_processes([look(busy, asker)]).told)


def test_a_child_that_is_waited_for_over_two_looks_is_found() -> None:
    ranks = rank(0, BACKWARD), rank(1, WAITS)
    assert not diagnose_processes([look(*ranks)]).findings
    (finding,) = diagnose_processes([look(*ranks)], look_count=2, unchanged_s=9.5).findings
    assert finding.rule == "HANG018"
    assert [w.rank for w in finding.who] == [1]


@pytest.mark.parametrize(
    ("silent_s", "rules"), [(20.0, ["PS017"]), (3.0, [])], ids=["idle for long", "a pause"]
)
def test_an_idle_chief_is_found_by_the_silence_between_it_and_its_workers(
    silent_s: float, rules: list[str]
) -> None:
    joins = Frame("/site-packages/tensorflow/python/training/server_lib.py", 1, "join")
    cluster = (
        '{"cluster": {"chief": ["h:1"], "worker": ["h:2"], "ps": ["h:3"]}, '
        '"task": {"type": "%s", "index": 0}}'
    )
    tasks = [
        msgspec.structs.replace(
            rank(number, frame, sockets=(link(silent_s, reverse=bool(number)),)),
            variables={"TF_CONFIG": cluster % job},
        )
        for number, (job, frame) in enumerate((("chief", SLEEPS), ("worker", joins), ("ps", joins)))
    ]
    tasks = [
        msgspec.structs.replace(
            t, member=msgspec.structs.replace(t.member, notes={ATTACHED: "1"}, probed=False)
        )
        for t in tasks
    ]
    findings = diagnose_processes([look(*tasks)]).findings
    assert [f.rule for f in findings] == rules
    assert all("asleep at train.py:8 in rest" in f.summary for f in findings)
