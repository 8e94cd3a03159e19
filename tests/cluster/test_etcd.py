"""The seat in a real etcd on this machine: who has it, who gets it next, and what is said where it fails."""

from __future__ import annotations

import asyncio
import http.server
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from etcd3gw.exceptions import ConnectionFailedError, Etcd3Exception

from allaboard.cluster.transport.etcd import EtcdLeaseStore
from allaboard.cluster.transport.etcd_errors import explain_error
from allaboard.cluster.transport.etcd_url import EtcdUrl
from allaboard.cluster.transport.leader_lease import LEASE_S, LeaderRecord, LeaseStoreError
from free_ports import free_port
from real_etcd import started

T = TypeVar("T")
pytestmark = pytest.mark.skipif(
    shutil.which("etcd") is None, reason="no etcd: apt-get install etcd-server"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with started(tmp_path_factory.mktemp("etcd")) as found:
        yield found


def seats(
    port: int, prefix: str, job: str = "job=1", variables: dict[str, str] | None = None
) -> EtcdLeaseStore:
    return EtcdLeaseStore(EtcdUrl((("127.0.0.1", port),), prefix, False), job, variables or {})


def seat(name: str, job: str = "job=1") -> LeaderRecord:
    return LeaderRecord(
        address=f"{name}:1", session=f"session of {name}", host=name, job=job, rank=0
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Comes back when it has stopped: a busy machine takes a moment, in which it may still answer."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def kind(work: Coroutine[Any, Any, Any]) -> tuple[str, str]:
    with pytest.raises(LeaseStoreError) as caught:
        run(work)
    return caught.value.kind, str(caught.value)


def test_one_of_many_takes_it_and_all_see_whom(port: int) -> None:
    async def many() -> tuple[list[bool], list[LeaderRecord | None]]:
        stood = [seats(port, "many") for _ in range(8)]
        taken = await asyncio.gather(*(s.acquire_lease(seat(f"h{i}")) for i, s in enumerate(stood)))
        seen = await asyncio.gather(*(s.read_leader() for s in stood))
        assert await stood[taken.index(True)].renew_lease()
        stood[taken.index(True)].release_lease()
        return taken, seen

    taken, seen = run(many())
    assert sum(taken) == 1
    assert set(seen) == {seat(f"h{taken.index(True)}")}
    assert run(seats(port, "many").read_leader()) is None


def test_who_is_not_heard_of_loses_it(port: int) -> None:
    async def lost() -> float:
        holder, other = seats(port, "lost"), seats(port, "lost")
        assert await holder.acquire_lease(seat("a"))
        began = time.monotonic()
        while not await other.acquire_lease(seat("b")):
            assert time.monotonic() - began < 3 * LEASE_S
            await asyncio.sleep(0.1)
        assert not await holder.renew_lease()
        other.release_lease()
        return time.monotonic() - began

    assert LEASE_S - 1 < run(lost()) < LEASE_S + 4


def test_an_answer_that_was_lost_is_no_loss(port: int) -> None:
    async def again() -> None:
        one = seats(port, "again")
        assert await one.acquire_lease(seat("a")) and await one.acquire_lease(seat("a"))
        assert await one.renew_lease()
        one.release_lease()

    run(again())


def test_other_jobs_and_prefixes_are_other_seats(port: int) -> None:
    async def apart() -> None:
        several = [seats(port, "p", "job=1"), seats(port, "p", "job=2"), seats(port, "q", "job=1")]
        for one, job in zip(several, ("job=1", "job=2", "job=1"), strict=True):
            assert await one.acquire_lease(seat("a", job))
            one.release_lease()

    run(apart())


def test_a_key_that_holds_something_else_is_told_with_what_to_do(port: int) -> None:
    one = seats(port, "garbled")
    one._clients[0].put(one.key, "{")
    found, said = kind(one.read_leader())
    assert found == "garbled" and f"etcdctl del {one.key}" in said


def test_nobody_listens_there() -> None:
    found, said = kind(seats(free_port(), "x").read_leader())
    assert (found, said.partition(": ")[2]) == ("unreachable", "connection refused")


def test_a_name_that_nobody_knows_in_the_systems_own_words() -> None:
    wrapped = "HTTPConnectionPool: Failed to resolve 'x' ([Errno -2] Name or service not known)"
    assert explain_error(ConnectionFailedError(wrapped)) == (
        "unreachable",
        "name or service not known",
    )


def test_another_program_there_is_no_etcd() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found, said = kind(seats(server.server_port, "x").read_leader())
        server.shutdown()
    assert found == "no-etcd", said


def test_a_silent_one_is_bounded() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        began = time.monotonic()
        found, said = kind(seats(mute.getsockname()[1], "x").read_leader())
    assert found == "unreachable" and "no answer in 2 s" in said
    assert time.monotonic() - began < 6


def test_the_next_endpoint_is_asked_where_one_is_down(port: int) -> None:
    place = EtcdUrl((("127.0.0.1", free_port()), ("127.0.0.1", port)), "next", False)
    one = EtcdLeaseStore(place, "job=1", {})
    assert run(one.read_leader()) is None
    assert one._clients[0].port == port


def test_one_that_stops_or_dies_in_a_call_is_bounded_and_comes_back(tmp_path: Path) -> None:
    etcd = started(tmp_path)
    with etcd as port:
        one = seats(port, "stops")
        assert run(one.acquire_lease(seat("a")))
        stop(etcd.process)
        began = time.monotonic()
        found, said = kind(one.renew_lease())
        assert found == "unreachable" and "no answer in 2 s" in said
        assert time.monotonic() - began < 6
        etcd.process.send_signal(signal.SIGCONT)
        assert run(one.read_leader()) == seat("a")

        async def dies() -> None:
            stop(etcd.process)
            asked = asyncio.ensure_future(one.read_leader())
            await asyncio.sleep(0.3)
            etcd.process.kill()
            await asked

        assert kind(dies())[0] == "unreachable"
        etcd.process.wait()
        found, said = kind(one.renew_lease())
        # Over the connection of before, whose reset may come late, or over a new one.
        assert found == "unreachable"
        assert said.partition(": ")[2] in ("connection refused", "connection reset by peer")


def test_the_next_endpoint_is_asked_where_one_has_stopped(port: int, tmp_path: Path) -> None:
    etcd = started(tmp_path)
    with etcd as first:
        place = EtcdUrl((("127.0.0.1", first), ("127.0.0.1", port)), "stopped", False)
        one = EtcdLeaseStore(place, "job=1", {})
        assert run(one.read_leader()) is None and one._clients[0].port == first
        stop(etcd.process)
        assert run(one.read_leader()) is None and one._clients[0].port == port
        began = time.monotonic()
        assert run(one.read_leader()) is None
        assert time.monotonic() - began < 1.5, "the one that answers is asked first from then on"


def test_endpoints_that_say_nothing_do_not_cost_the_lease(port: int) -> None:
    with ExitStack() as held:
        mute = [held.enter_context(socket.socket()) for _ in range(3)]
        for each in mute:
            each.bind(("127.0.0.1", 0))
            each.listen()
        places = [("127.0.0.1", free_port()), *(m.getsockname() for m in mute), ("127.0.0.1", port)]
        one = EtcdLeaseStore(EtcdUrl(tuple(places), "mute", False), "job=1", {})
        order = list(one._clients)

        async def held_for_long() -> float:
            assert await one.read_leader() is None and one._clients[0].port == port
            assert await one.acquire_lease(seat("a"))
            slowest, until = 0.0, time.monotonic() + LEASE_S + 2
            while time.monotonic() < until:
                one._clients = list(order)  # as if the one that answered had just stopped
                began = time.monotonic()
                assert await one.renew_lease()
                slowest = max(slowest, time.monotonic() - began)
                await asyncio.sleep(1.0)
            assert await seats(port, "mute").read_leader() == seat("a")
            one.release_lease()
            return slowest

        assert run(held_for_long()) < LEASE_S - 1.0


def test_users(tmp_path: Path) -> None:
    with started(tmp_path) as port:
        client = seats(port, "u")._clients[0]
        for path, body in (
            ("user/add", {"name": "root", "password": "boss"}),
            ("role/add", {"name": "root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("user/add", {"name": "guest", "password": "pw"}),
            ("enable", {}),
        ):
            client.post(client.get_url(f"/auth/{path}"), json=body)
        boss = seats(port, "u", variables={"ETCDCTL_USER": "root:boss"})
        assert run(boss.acquire_lease(seat("a")))
        # As after a restart of etcd, which then knows no token of before.
        boss._clients[0].session.headers["Authorization"] = "of.before"
        assert run(boss.renew_lease()) and run(boss.read_leader()) == seat("a")
        wrong = {"ETCDCTL_USER": "root", "ETCDCTL_PASSWORD": "x"}
        assert kind(seats(port, "u").read_leader()) == (
            "auth", f"127.0.0.1:{port}: it requires a user: set ETCDCTL_USER=name:password",
        )  # fmt: skip
        assert "does not know this user" in kind(seats(port, "u", variables=wrong).read_leader())[1]
        guest = {"ETCDCTL_USER": "guest:pw"}
        assert "may not" in kind(seats(port, "u", variables=guest).read_leader())[1]


def test_a_full_one_is_told_as_that(tmp_path: Path) -> None:
    with started(tmp_path) as port:
        one = seats(port, "full")
        client = one._clients[0]
        alarm = {"action": "ACTIVATE", "alarm": "NOSPACE"}
        client.post(client.get_url("/maintenance/alarm"), json=alarm)
        assert run(one.read_leader()) is None
        found, said = kind(one.acquire_lease(seat("a")))
    assert (found, said.partition(": ")[2]) == (
        "full", "its database is full, it takes no new keys (alarm NOSPACE)",
    )  # fmt: skip


def test_what_etcd_itself_says_is_of_an_etcd() -> None:
    busy = Etcd3Exception('{"error":"etcdserver: too many requests","code":8}', "429")
    assert explain_error(busy) == ("unreachable", "etcdserver: too many requests")
