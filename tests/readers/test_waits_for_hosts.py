"""What is waited for at a start, and who is gone, as launchers and services write it; and lists of tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.formats.dumps.wrapped_lines import join_wrapped_lines
from diagnosed_texts import diagnose, errors

TORCHRUN = """[INFO] 2021-12-08 12:28:26,098 api: Starting elastic_operator with launch configs:
  entrypoint       : train.py
  min_nodes        : {nodes}
  rdzv_backend     : c10d
  rdzv_endpoint    : a-worker-0:23456

[INFO] 2021-12-08 12:28:26,101 api: [default] starting workers for entrypoint: python
[INFO] 2021-12-08 12:28:26,101 api: [default] Rendezvous'ing worker group
[INFO] 2021-12-08 12:28:26,102 dynamic_rendezvous: The node 'a_8_0' attempts to join the next round of the \
rendezvous 'j'.
"""
MET = "[INFO] 2021-12-08 12:28:29,102 api: [default] Rendezvous complete for workers. Result:\n"
SHUT = (
    "2020-09-25 16:52:53.640992: W tensorflow/core/framework/op_kernel.cc:1651] OP_REQUIRES failed at "
    "mpi_ops.cc:402 : Unknown: Horovod has been shut down. This was caused by an exception on one of the "
    "ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished "
    "execution."
)
FATAL = "F0719 10:40:45.100778 26612 LightNetwork.cpp:397] Check failed: error >= 0 ERROR connecting to "


def test_a_torchrun_that_waits_for_other_hosts(tmp_path: Path) -> None:
    (found,) = diagnose(tmp_path, TORCHRUN.format(nodes=2).replace("\\\n", ""))
    assert (found.rule, found.severity) == ("JOIN001", "warning")
    assert found.summary.endswith("2 of them must come to a-worker-0:23456")


@pytest.mark.parametrize("text", [TORCHRUN.format(nodes=1), TORCHRUN.format(nodes=2) + MET])
def test_one_that_waits_for_nobody_or_has_met_them_is_no_finding(tmp_path: Path, text: str) -> None:
    assert diagnose(tmp_path, text.replace("\\\n", "")) == []


def test_a_shutdown_of_horovod_is_that_of_another_rank(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, f"[0]<stderr>:{SHUT}\n[0]<stderr>:{SHUT}")
    assert found.rule == "EXIT005" and "another one raised" in found.summary
    assert "hvd.join()" in found.fix


def test_who_refuses_a_connection_did_not_break_it(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, f"{FATAL}192.0.2.7: Connection refused [111]")
    assert found.summary.startswith("nobody listened at 192.0.2.7 (Connection refused)")
    (found,) = errors(tmp_path, f"{FATAL}192.0.2.7: Connection reset by peer [104]")
    assert found.summary.startswith("the connection to 192.0.2.7 broke")


def test_many_processes_that_never_came_are_listed_as_ranges(tmp_path: Path) -> None:
    tasks = "".join(f"\n/job:jax_worker/replica:0/task:{n}" for n in (1, 6, 3, 2, 5, 7, 4))
    told = "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed "
    (found,) = errors(tmp_path, f"{told}out task names:{tasks}\n")
    assert found.summary == "processes 1-7 never connected to the coordinator"
    assert len(found.who) == 7


def test_a_terminal_may_break_a_line_at_a_space() -> None:
    first, second = (
        "x" * 30 + " has been shut d" + "y" * 30,
        "own. This was caused by an " + "z" * 49,
    )
    text = "\n".join([first, second, " the rest.", first, second, " the rest.", "short"])
    joined = join_wrapped_lines(text)
    assert joined is not None and joined.text.split("\n")[0] == f"{first}{second} the rest."
