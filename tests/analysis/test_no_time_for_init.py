"""An init that was given a timeout of 0, which PyTorch's RPC takes as no time and not as no limit."""

from __future__ import annotations

from allaboard.facts import Frame
from allaboard.facts.samples import ended_member, sample_job
from allaboard.rules.exit002_exception import RULE

STORE = Frame(
    "/v/site-packages/torch/distributed/rpc/backend_registry.py", 123, "_init_process_group"
)
INIT = Frame("/home/u/train.py", 13, "main", "rpc.init_rpc(name, rank=rank, world_size=2)")


def findings(message: str) -> list[tuple[str, str]]:
    """Return the summary and the fix of each finding about a rank that ended with this message."""
    ended = ended_member(0, raised=("DistStoreError", message), frames=(STORE, INIT))
    return [(c.summary, c.fix) for c in RULE.check(sample_job(ended))]


def test_a_timeout_of_zero_is_the_cause_and_not_rank_0() -> None:
    ((summary, fix),) = findings("wait timeout after 0ms, keys: /rpc_prefix_0/0/0")
    assert "gave the init no time at all: its timeout is 0" in summary
    assert "rpc_timeout" in fix


def test_a_timeout_that_ran_out_is_of_who_did_not_come() -> None:
    said = findings("wait timeout after 300000ms, keys: /rpc_prefix_0/0/0")
    assert not any("no time at all" in summary for summary, _ in said)
