"""What a job offers to be asked is told with the command that asks it."""

from __future__ import annotations

import pytest

from allaboard.diagnosis.live.live_diagnosis import diagnose_processes
from allaboard.facts import HostLook, Member, Phase, Present, Socket, Who


def rank(number: int, *listening: str, host: str = "h0") -> Present:
    who = Who(index=number, rank=number, host=host, pid=100 + number)
    return Present(
        member=Member(who=who, worker=number, phase=Phase.TRAINING),
        sockets=tuple(Socket(local, "0.0.0.0:0", "LISTEN") for local in listening),
    )


def lines(*present: Present) -> list[str]:
    hosts = dict.fromkeys(p.member.who.host for p in present)
    looks = [
        HostLook(host=h, now=1.0, present=tuple(p for p in present if p.member.who.host == h))
        for h in hosts
    ]
    return [line for line in diagnose_processes(looks).told if "to ask it too" in line]


@pytest.mark.parametrize(
    ("local", "command"),
    [
        ("127.0.0.1:28028", "ras://127.0.0.1:28028"),
        ("[::]:25999", "http://127.0.0.1:25999"),
        ("0.0.0.0:28028", "ras://127.0.0.1:28028"),
    ],
)
def test_each_service_once_for_a_host(local: str, command: str) -> None:
    (line,) = lines(rank(0, local), rank(1, local), rank(2))
    assert line.startswith("worker 0 offers ")
    assert line.endswith(f"to ask it too: allaboard diagnose {command}")


def test_that_of_another_host_is_named_with_the_host() -> None:
    told = lines(rank(0, "127.0.0.1:28028"), rank(1, "0.0.0.0:28028", host="h1"))
    assert [line.split()[-1] for line in told] == ["ras://127.0.0.1:28028", "ras://h1:28028"]


def test_other_listeners_and_connections_to_such_a_port_are_none() -> None:
    connected = Socket("127.0.0.1:40000", "127.0.0.1:28028", "ESTAB")
    present = rank(0, "127.0.0.1:29500")
    assert lines(present, rank(1)) == []
    assert lines(Present(member=present.member, sockets=(connected,)), rank(1)) == []
