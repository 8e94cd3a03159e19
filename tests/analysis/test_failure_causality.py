"""Who began it and who fell; who lost a peer."""

from __future__ import annotations

import signal

import pytest

from allaboard.analysis.failures.failure_causality import (
    has_failed,
    must_delay_report,
    order_failures,
)
from allaboard.analysis.failures.lost_peer import has_lost_peer
from allaboard.facts import Member
from allaboard.facts.samples import (
    arrived_member,
    coming_member,
    ended_member,
    gathering_job,
    sample_job,
    sample_member,
)

CLOSED = ("RuntimeError", "[gloo/pair.cc:534] Connection closed by peer [127.0.0.1]:18334")


@pytest.mark.parametrize(
    ("one", "bad"),
    [
        (sample_member(0), False),
        (ended_member(0, code=0), False),
        (ended_member(0), False),
        (ended_member(0, code=1), True),
        (ended_member(0, signal=int(signal.SIGKILL)), True),
        (ended_member(0, signal=int(signal.SIGTERM), ours=True), False),
        (ended_member(0, raised=("ValueError", "x")), True),
        (ended_member(0, raised=("ValueError", "x"), ours=True), True),
        (ended_member(0, raised=("KeyboardInterrupt", ""), code=0), False),
        (ended_member(0, raised=("KeyboardInterrupt", ""), code=130), True),
        (ended_member(0, raised=("KeyboardInterrupt", ""), signal=2, ours=True), False),
    ],
)
def test_what_a_failure_is(one: Member, bad: bool) -> None:
    assert has_failed(one) is bad


@pytest.mark.parametrize(
    ("kind", "message", "lost"),
    [
        (*CLOSED, True),
        ("RuntimeError", "Timed out waiting 30000ms for recv operation to complete", True),
        ("DistNetworkError", "anything", True),
        ("UnavailableError", "anything", True),
        ("RuntimeError", "connectFullMesh failed with ... refused", True),
        ("ConnectionResetError", "[Errno 104]", True),
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied", False),
        ("ValueError", "bad batch", False),
        (
            "InvalidArgumentError",
            "bad record : Tensor had NaN values\n<stack traces unavailable>",
            False,
        ),
        ("InternalError", "UNAVAILABLE: connection lost", True),
        (
            "InvalidArgumentError",
            "Shape mismatch in the collective instance 1. Op at device /job:worker/task:1 "
            "expected shape [1] but another member in the group expected shape [2]",
            True,
        ),
        ("MemoryError", "", False),
    ],
)
def test_who_lost_a_peer(kind: str, message: str, lost: bool) -> None:
    assert has_lost_peer(ended_member(0, raised=(kind, message))) is lost


def test_what_rpc_raises_of_a_peer_that_is_gone_is_no_failure_of_its_own() -> None:
    eof = "eof (this error originated at tensorpipe/transport/shm/connection_impl.cc:259)"
    gone, told = (
        ended_member(2, code=9, ended_at=95.0),
        ended_member(0, ended_at=94.9, raised=("RuntimeError", eof)),
    )
    assert split(told, gone) == ([2], [0])
    assert not has_lost_peer(
        ended_member(0, raised=("RuntimeError", "On WorkerInfo(id=2, name=actor2)"))
    )


def test_last_words_speak_where_no_exception_was_kept() -> None:
    assert has_lost_peer(
        ended_member(0, code=134, last_line="F0000 CoordinationService: peer gone")
    )
    assert not has_lost_peer(ended_member(0, code=1, last_line="no such file"))
    assert not has_lost_peer(sample_member(0))


def split(*members: Member) -> tuple[list[int | None], list[int | None]]:
    found = order_failures(sample_job(*members))
    return [m.who.rank for m in found.root_failures], [m.who.rank for m in found.consequences]


def test_the_one_who_was_killed_began_it() -> None:
    killed = ended_member(1, ended_at=95.0, signal=int(signal.SIGKILL))
    others = [ended_member(r, ended_at=95.3, raised=CLOSED) for r in (0, 2)]
    assert split(*others, killed) == ([1], [0, 2])


def test_the_cause_may_be_seen_after_its_effect() -> None:
    raised = ended_member(1, ended_at=95.4, raised=("ValueError", "bad batch"))
    assert split(ended_member(0, ended_at=95.3, raised=CLOSED), raised) == ([1], [0])


def test_two_may_begin() -> None:
    assert split(
        ended_member(0, ended_at=95.0, raised=("ValueError", "a")),
        ended_member(1, ended_at=96.0, raised=("OSError", "b")),
    ) == ([0, 1], [])


def test_a_bare_exit_code_after_another_failure_is_its_effect() -> None:
    assert split(
        ended_member(0, ended_at=95.0, code=1), ended_member(1, ended_at=96.0, code=1)
    ) == ([0], [1])


def test_a_kill_is_never_an_effect() -> None:
    oom = ended_member(1, ended_at=96.0, signal=int(signal.SIGKILL), oom=True)
    assert split(ended_member(0, ended_at=95.0, code=1), oom) == ([0, 1], [])
    sent = ended_member(1, ended_at=96.0, signal=int(signal.SIGTERM))
    assert split(ended_member(0, ended_at=95.0, code=1), sent) == ([0], [1])


def test_launchers_pass_on_what_they_saw() -> None:
    launcher = ended_member(9, ended_at=96.0, code=1, member={"launcher": True})
    assert split(ended_member(0, ended_at=95.0, code=2), launcher) == ([0], [])


def test_a_launcher_kills_who_does_not_end_by_itself() -> None:
    launcher = ended_member(9, ended_at=130.0, code=1, member={"launcher": True, "worker": 0})
    killed = [
        ended_member(r, ended_at=95.0 + 30 * r, signal=9, member={"worker": 0}) for r in (0, 1)
    ]
    assert split(*killed, launcher) == ([0], [1])
    crashed = ended_member(1, ended_at=95.5, signal=int(signal.SIGSEGV), member={"worker": 0})
    assert split(killed[0], crashed, launcher) == ([0, 1], [])


def test_nobody_failed() -> None:
    assert split(sample_member(0), ended_member(1, code=0)) == ([], [])


def test_a_failure_too_early_waits_for_those_who_may_come() -> None:
    fallen = ended_member(1, ended_at=99.0, code=1, member={"round": 0, "declared": None})
    assert must_delay_report(gathering_job(coming_member(0), fallen), fallen)
    assert must_delay_report(gathering_job(arrived_member(0), fallen), fallen)
    assert not must_delay_report(gathering_job(fallen, launched=1), fallen)
    assert not must_delay_report(gathering_job(coming_member(0), fallen, now=110.0), fallen), (
        "told anyway"
    )
    assert not must_delay_report(
        gathering_job(coming_member(0), fallen), ended_member(1, code=1)
    ), "it had joined"


def test_what_a_group_raises_for_its_own_host_speaks_of_no_peer() -> None:
    said = ("DistBackendError", "ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
    assert not has_lost_peer(ended_member(0, raised=said))
    assert has_lost_peer(
        ended_member(0, raised=("DistBackendError", "NCCL communicator was aborted on rank 1"))
    )
