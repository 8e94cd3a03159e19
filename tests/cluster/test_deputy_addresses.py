"""At which addresses the others of a job would be met while the first one has not started."""

from __future__ import annotations

import pytest

from allaboard.cluster.deputy_addresses import DeputyPlaces, deputy_places
from allaboard.facts.samples import sample_declaration

NODES = {"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "h[0-2]", "SLURM_NNODES": "3"}
ALL = ("h0:29500", "h1:29500", "h2:29500")


@pytest.mark.parametrize(
    ("rank", "meeting", "environment", "host", "expected"),
    [
        pytest.param(2, "h0:29500", NODES, "h2", DeputyPlaces(2, ALL), id="a rank of Slurm"),
        pytest.param(
            2, "h0:29500", NODES, "h2.cluster.example", DeputyPlaces(2, ALL), id="with its domain"
        ),
        pytest.param(
            1,
            "10.0.0.1:29500",
            NODES,
            "h1",
            DeputyPlaces(1, ("10.0.0.1:29500", *ALL[1:])),
            id="the first host by its address",
        ),
        pytest.param(
            5,
            "h0:29500",
            NODES | {"SLURM_LOCALID": "1", "LOCAL_RANK": "1"},
            "h2",
            DeputyPlaces(2, ALL, may_lead=False),
            id="the second process of its host",
        ),
        pytest.param(0, "h0:29500", NODES, "h0", None, id="the first rank itself"),
        pytest.param(1, "h0:29500", NODES, "h0", None, id="another rank of the first host"),
        pytest.param(2, "h1:29500", NODES, "h2", None, id="the job meets at another node"),
        pytest.param(2, "h0:29500", NODES, "login", None, id="a host that is not in the list"),
        pytest.param(1, "h0:29500", {}, "h1", None, id="no list"),
        pytest.param(
            1,
            "h0:29500",
            NODES | {"SLURM_STEP_NODELIST": "h[0-1]"},
            "h1",
            None,
            id="two hosts: the second one waits alone",
        ),
        pytest.param(
            1,
            "h0:29500",
            NODES | {"SLURM_STEP_NODELIST": "h[0-99]"},
            "h1",
            None,
            id="too many to ask each",
        ),
    ],
)
def test_the_hosts_of_a_batch_job(
    rank: int, meeting: str, environment: dict[str, str], host: str, expected: DeputyPlaces | None
) -> None:
    declared = sample_declaration(rank, 6, place=f"tcp://{meeting}")
    assert deputy_places(declared, meeting, environment, host) == expected


def test_the_tasks_of_a_cluster() -> None:
    cluster = {f"worker:{i}": f"h{i}:2222" for i in range(3)}
    declared = sample_declaration(1, 3, cluster=cluster)
    addresses = ("h0:2222", "h1:2222", "h2:2222")
    assert deputy_places(declared, "h0:2222", {}, "h1") == DeputyPlaces(1, addresses)
    assert deputy_places(declared, "h9:2222", {}, "h1") is None
