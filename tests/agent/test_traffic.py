"""Whose connection it is: by the listed address, by the socket at the other end, by the host."""

from __future__ import annotations

from allaboard.agent.observation.traffic import (
    group_by_host,
    group_by_task,
    group_flows,
    has_parameter_servers,
)
from allaboard.facts import Declared, Flow, Flows

CLUSTER = {"worker:0": "10.0.0.1:9", "worker:1": "10.0.0.2:9", "ps:0": "10.0.0.3:9"}
LISTED = {address: task for task, address in CLUSTER.items()}


def told(job: str, index: int, cluster: dict[str, str] | None = None) -> Declared:
    return Declared(
        framework="tensorflow", call="Server", rank=index, world_size=3, job=job, index=index,
        cluster=cluster or CLUSTER,
    )  # fmt: skip


def test_who_called_is_known_by_the_listed_address() -> None:
    out = Flow(local="10.0.0.1:40001", remote="10.0.0.3:9")
    found = group_by_task({7: (out,)}, {7: told("worker", 0)}, {7: LISTED})
    assert found == {7: (Flows("ps:0", (out,)),)}


def test_who_was_called_knows_the_caller_by_its_host() -> None:
    back = Flow(local="10.0.0.3:9", remote="10.0.0.2:40001")
    found = group_by_task({7: (back,)}, {7: told("ps", 0)}, {7: LISTED})
    assert found == {7: (Flows("worker:1", (back,)),)}


def test_on_one_host_the_socket_at_the_other_end_tells() -> None:
    cluster = {"worker:0": "127.0.0.1:1", "worker:1": "127.0.0.1:2", "ps:0": "127.0.0.1:3"}
    listed = {address: task for task, address in cluster.items()}
    out = Flow(local="127.0.0.1:40002", remote="127.0.0.1:3")
    back = Flow(local="127.0.0.1:3", remote="127.0.0.1:40002")
    members = {8: told("worker", 1, cluster), 9: told("ps", 0, cluster)}
    found = group_by_task({8: (out,), 9: (back,)}, members, {8: listed, 9: listed})
    assert found == {8: (Flows("ps:0", (out,)),), 9: (Flows("worker:1", (back,)),)}


def test_strangers_and_a_process_that_calls_itself_are_left_out() -> None:
    database = Flow(local="10.0.0.1:40001", remote="10.9.9.9:5432")
    itself = Flow(local="10.0.0.1:40002", remote="10.0.0.1:9")
    assert group_by_task({7: (database, itself)}, {7: told("worker", 0)}, {7: LISTED}) == {7: ()}


def test_only_jobs_with_servers_are_measured() -> None:
    assert has_parameter_servers(CLUSTER)
    assert not has_parameter_servers({"worker:0": "a:1", "worker:1": "b:1"})


def test_without_servers_it_is_told_by_host() -> None:
    out = Flow(local="10.0.0.1:40001", remote="10.0.0.3:9")
    back = Flow(local="10.0.0.1:29500", remote="10.0.0.3:40002")
    own = Flow(local="10.0.0.1:40003", remote="10.0.0.1:29500")
    near = Flow(local="127.0.0.1:40004", remote="127.0.0.1:8080")
    assert group_by_host({7: (out, own, back, near)}) == {7: (Flows("10.0.0.3", (out, back)),)}


def test_of_a_server_without_any_connection_that_is_told() -> None:
    alone = {"worker:0": "10.0.0.1:9", "worker:1": "10.0.0.2:9"}
    members = {7: told("ps", 0), 8: told("worker", 1), 9: told("worker", 0, alone)}
    out = Flow(local="10.0.0.2:40001", remote="10.0.0.3:9")
    listed = {7: LISTED, 8: LISTED, 9: {}}
    assert group_flows({8: (out,)}, members, listed) == {7: (), 8: (Flows("ps:0", (out,)),)}
