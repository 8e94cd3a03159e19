"""What the environment says of a cluster that somebody else starts."""

from __future__ import annotations

import json

import pytest

from allaboard.hosts.described import described

CLUSTER = {"ps": ["d:1", "e:1"], "worker": ["b:1", "c:1"], "chief": ["a:1"]}


@pytest.mark.parametrize(
    ("job", "index", "rank"),
    [("chief", 0, 0), ("worker", 1, 2), ("ps", 0, 3), ("evaluator", 0, -1)],
)
def test_tasks_are_numbered_chief_first_and_servers_last(job: str, index: int, rank: int) -> None:
    text = json.dumps({"cluster": CLUSTER, "task": {"type": job, "index": index}})
    told = described({"TF_CONFIG": text})
    assert told is not None
    assert (told.address, told.rank) == ("a:1", rank)
