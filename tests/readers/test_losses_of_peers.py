"""What libraries write of a peer that they lost: whose end it is, and the error that comes before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import errors

DISCONNECTED = (
    "-"
    * 74
    + "\nAn MPI communication peer process has unexpectedly disconnected.  This\nusually indicates a "
    "failure in the peer process (e.g., a crash or\notherwise exiting without calling MPI_FINALIZE first).\n"
    "\nAlthough this local MPI process will likely now behave unpredictably\n(it may even hang or crash), "
    "the root cause of this problem is the\nfailure of the peer -- that is what you need to investigate.\n\n"
    "  Local host: gpu-a\n  Local PID:  7720\n  Peer host:  gpu-b\n" + "-" * 74
)
REFUSED = (
    "[gpu-b:06084] *** An error occurred in MPI_Bcast\n[gpu-b:06084] *** reported by process "
    "[1169620993,3]\n[gpu-b:06084] *** on communicator MPI_COMM_WORLD\n[gpu-b:06084] *** {0}\n[gpu-b:06084] "
    "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[gpu-b:06084] ***    and "
    "potentially your MPI job)"
)
KILLED = (
    "mpirun noticed that process rank 5 with PID 2448 on node gpu-b exited on signal 9 (Killed)."
)
WATCHED = "WatchTasksAsync failed for task 3: UNAVAILABLE: failed to connect to all addresses"
BROKEN = (
    WATCHED
    + "; last error: UNKNOWN:\nipv4:10.1.0.4:1234: Failed to connect to remote host: Connection refused"
)


def test_the_host_of_the_peer_is_told_and_not_that_of_the_victim(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, DISCONNECTED, "[1,7]<stderr>:*** Aborted at")
    assert finding.rule == "EXIT005"
    assert finding.summary.startswith("a process on gpu-b went away")
    assert "on gpu-b: dmesg" in finding.fix and not finding.who


def test_whoever_was_killed_comes_before_whoever_lost_it(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, DISCONNECTED, KILLED)
    assert (finding.rule, finding.who[0].rank) == ("EXIT001", 5)


def test_a_call_that_open_mpi_refused_is_why_the_peer_was_lost(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, REFUSED.format("MPI_ERR_ROOT: invalid root"), DISCONNECTED)
    assert (finding.rule, finding.who[0].rank) == ("LOG013", 3)
    assert "MPI_Bcast failed, and Open MPI ended the job: invalid root" in finding.summary


def test_a_truncated_message_is_told_by_its_own_row(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, REFUSED.format("MPI_ERR_TRUNCATE: message truncated"))
    assert finding.rule == "LOG003"


@pytest.mark.parametrize(
    ("text", "says"),
    [(WATCHED, "answered no more"), (BROKEN, "answered no more at 10.1.0.4:1234")],
)
def test_a_leader_that_a_task_watched_in_vain(tmp_path: Path, text: str, says: str) -> None:
    (finding,) = errors(tmp_path, text)
    assert finding.rule == "EXIT005" and not finding.who
    assert f"the leader (process 0, where the coordination service is) {says}" in finding.summary


XLA = (
    "2024-09-05 07:57:34.5: W external/xla/xla/service/platform_util.cc:199] unable to create StreamExecutor "
    "for CUDA:1: failed initializing StreamExecutor for CUDA device ordinal 1: INTERNAL: Failed call to "
    "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE: invalid device ordinal"
)
BEGUN = (
    'Traceback (most recent call last):\n  File "/v/lib/python3.9/site-packages/jax/_src/xla_bridge.py", '
    "line 879, in backends\n    backend = _init_backend(platform)"
)


def test_a_gpu_that_is_not_there_is_told_where_the_traceback_breaks_off(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, XLA, BEGUN)
    assert finding.rule == "LOG013" and "asked for GPU 1 of its host" in finding.summary


def test_the_sentence_above_a_pasted_block_is_not_of_the_log(tmp_path: Path) -> None:
    asks = "But it cannot see its data and raises this error"
    assert not errors(tmp_path, f"{asks}\n```\n{BEGUN}")
    (finding,) = errors(tmp_path, f"ERROR: cannot see its data\n```\n```\n{BEGUN}")
    assert "cannot see its data" in finding.summary


def test_a_graph_that_gaudi_does_not_compile_names_the_rank_and_its_software_s_logs(
    tmp_path: Path,
) -> None:
    said = "RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure]."
    text = "\n".join(f"[rank2]: {x}" for x in [*BEGUN.split("\n"), said])
    (finding,) = errors(tmp_path, text)
    assert finding.who[0].rank == 2 and "synStatus 26, Generic failure" in finding.summary
    assert "hl-smi" in finding.fix


RESET = (
    "[gpu-a][[9702,1],1][btl_tcp_frag.c:237:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: "
    "Connection reset by peer (104) "
)


def test_a_connection_that_broke_names_no_culprit(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, REFUSED.format("MPI_ERR_INTERN: internal error"), RESET)
    assert finding.rule == "EXIT005" and not finding.who
    assert "rank 1 on gpu-a lost the connection to a peer" in finding.summary
    assert not errors(tmp_path, RESET, "step 4 loss 0.3", "step 5 loss 0.2")


def test_an_internal_error_alone_is_told_with_its_doubt(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, REFUSED.format("MPI_ERR_OTHER: known error not in list"))
    assert finding.rule == "LOG012" and "MPI_Bcast failed inside Open MPI" in finding.summary
    assert "may have lost a peer" in " ".join(e.observed for e in finding.evidence)


def test_a_start_of_mpi_that_failed_names_the_host(tmp_path: Path) -> None:
    (finding,) = errors(
        tmp_path,
        "*** An error occurred in MPI_Init_thread\n*** on a NULL communicator\n*** MPI_ERRORS_ARE_FATAL "
        "(processes in this communicator will now abort,\n***    and potentially your MPI job)\n"
        "[gpu-a:71142] Local abort before MPI_INIT completed completed successfully,\n but am not able to "
        "aggregate error messages, and not able to guarantee that all other processes\n were killed!",
    )
    assert "MPI could not start in a process on gpu-a" in finding.summary


def test_a_tensor_on_a_gpu_that_mpi_cannot_read_is_one_finding(tmp_path: Path) -> None:
    crash = (
        "[gpu-a:{0}] Signal: Segmentation fault (11)\n[gpu-a:{0}] Signal code: {1}\n[gpu-a:{0}] Failing at "
        "address: 0x7f1246cb4a00\n[gpu-a:{0}] [ 0] /usr/lib/libmpi.so.40(ompi_coll_base_bcast+0x1)[0x7f]"
    )
    texts = [crash.format(n, "Invalid permissions (2)") for n in (2773, 2776)]
    (finding,) = errors(tmp_path, *texts)
    assert finding.rule == "LOG013" and "tensor on a GPU" in finding.summary
    (finding,) = errors(tmp_path, crash.format(2773, "Address not mapped (1)"))
    assert "GPU" not in finding.summary


CLOSED = (
    "ERROR:torch.distributed.elastic.multiprocessing.errors.error_handler:{\n"
    '  "message": {\n    "message": "RendezvousClosedError: ",\n    "extraInfo": {\n      "py_callstack": "Tr'
)


def test_a_closed_rendezvous_is_told_from_what_torchrun_records(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, CLOSED)
    assert finding.rule == "JOIN008" and not finding.who
