"""Hosts at fault by the names of Slurm's nodes."""

from __future__ import annotations

import pytest

from allaboard.schedulers.slurm_exclusion import slurm_nodes


@pytest.mark.parametrize(
    ("hosts", "listed", "nodes"),
    [
        (["n2"], "n[1-3]", ("n2",)),
        (["n2.example.org", "n2", "n3"], "n[1-3]", ("n2", "n3")),
        (["n2.example.org"], "n1.example.org,n2.example.org", ("n2.example.org",)),
        (["login"], "n[1-3]", ()),
        (["n2"], "", ()),
        (["n2"], "n[1-", ()),
    ],
)
def test_only_nodes_of_the_job_are_named(
    hosts: list[str], listed: str, nodes: tuple[str, ...]
) -> None:
    assert slurm_nodes(hosts, {"SLURM_JOB_NODELIST": listed}) == nodes
