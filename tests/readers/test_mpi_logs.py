"""What MPI's launchers and libraries write, and texts that only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import diagnose

BLOCK = (
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n{who}=   {end}\n"
    "=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n======\n"
)
PID = "=   PID 4711 RUNNING AT node-b\n"
RANK = "=   RANK 3 PID 4711 RUNNING AT node-b\n"
NAMED = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {0}\n"
RULE = "-" * 74 + "\n"
EPOCHS = "".join(f"epoch {n} loss 0.{9 - n}\n" for n in range(4))


@pytest.mark.parametrize(
    ("text", "rule", "summary"),
    [
        (BLOCK.format(who=PID, end="EXIT CODE: 9"), "EXIT001", "pid 4711 was killed by SIGKILL"),
        (BLOCK.format(who=PID, end="EXIT CODE: 139"), "EXIT001", "was killed by SIGSEGV"),
        (BLOCK.format(who="", end="EXIT CODE: 134"), "EXIT001", "was killed by SIGABRT"),
        (
            BLOCK.format(who=PID, end="EXIT CODE: 2") + NAMED.format("Interrupt (signal 2)"),
            "EXIT001",
            "SIGINT",
        ),
        (
            BLOCK.format(who=RANK, end="KILLED BY SIGNAL: 9 (Killed)"),
            "EXIT001",
            "worker 3 was killed by SIGKILL",
        ),
        (BLOCK.format(who=PID, end="EXIT CODE: 1"), "EXIT003", "exited with code 1"),
        (
            "application called MPI_Abort(MPI_COMM_WORLD, 7) - process 2\n",
            "EXIT003",
            "worker 2 exited with code 7",
        ),
        (
            RULE
            + "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n"
            + RULE,
            "EXIT003",
            "worker 2 exited with code 7",
        ),
    ],
)
def test_who_ended_is_told(tmp_path: Path, text: str, rule: str, summary: str) -> None:
    (finding,) = diagnose(tmp_path, EPOCHS + text)
    assert finding.rule == rule
    assert summary in finding.summary


def test_an_exit_code_adds_nothing_to_the_traceback(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/w/fit.py", line 3, in <module>\n    '
        "f()\nKeyError: 7\n"
    )
    (finding,) = diagnose(tmp_path, text + BLOCK.format(who=PID, end="EXIT CODE: 1"))
    assert (finding.rule, "fit.py:3" in finding.summary) == ("EXIT002", True)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            "Abort(1091215) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Other MPI error, error "
            "stack:\n"
            "MPIR_Init_thread(136)........:\nMPID_Init(1138)..............:\n"
            "MPIDI_OFI_mpi_init_hook(1061): OFI addrinfo() failed (ofi_init.c:1061:No data available)\n",
            "OFI addrinfo() failed",
        ),
        (
            RULE
            + "It looks like MPI_INIT failed for some reason; your parallel process is\nlikely to abort.  "
            "There are many reasons that a parallel process can\nfail.\n" + RULE,
            "MPI_INIT failed",
        ),
    ],
)
def test_a_text_of_mpi_that_no_table_has_is_quoted(tmp_path: Path, text: str, summary: str) -> None:
    (finding,) = diagnose(tmp_path, text)
    assert finding.rule == "LOG012"
    assert summary in finding.summary


@pytest.mark.parametrize(
    "text",
    [
        # A warning of Open MPI between its rules.
        RULE
        + "WARNING: There was an error initializing an OpenFabrics device.\n\n  Local host: n1\n"
        + RULE,
        RULE
        + "Open MPI's OFI driver detected multiple equidistant NICs. This is likely to affect\n"
        + RULE,
        # Processes that are meant to be alone, one after the other, or that count more than themselves.
        "worker pid 10 rank 0 / size 2\nworker pid 11 rank 1 / size 2\n",
        "worker pid 10 rank 0 / size 1\n",
        "worker pid 10 rank 0 / size 1\n" + "step\n" * 500 + "worker pid 11 rank 0 / size 1\n",
        "the report has a BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES of last week\n",
    ],
)
def test_what_is_no_end_is_silent(tmp_path: Path, text: str) -> None:
    assert diagnose(tmp_path, text + EPOCHS) == []


def test_a_script_that_started_a_launcher_is_not_blamed(tmp_path: Path) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/w/go.py", line 9, in <module>\n    check_call(cmd)\n'
        '  File "/usr/lib/python3.11/subprocess.py", line 413, in check_call\n    raise '
        "CalledProcessError(r, cmd)\n"
        "subprocess.CalledProcessError: Command '['{0}', '-n', '2']' returned non-zero exit status 255\n"
    )
    (launcher,) = diagnose(tmp_path, raised.format("/opt/bin/mpirun"))
    assert launcher.rule == "EXIT003"
    (tool,) = diagnose(tmp_path, raised.format("ffmpeg"))
    assert tool.rule == "EXIT002"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "[n1:7:0:7] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_1:1/RoCE\n",
            "NET006",
        ),
        (
            "[1.1] [n1:7:0]  sock.c:260  UCX  ERROR   connect(fd=41, dest_addr=172.17.0.1:45031) failed: "
            "Connection refused\n",
            "NET006",
        ),
        (
            "Abort(1) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Other MPI error, error stack:\n"
            "MPIDI_OFI_mpi_init_hook(986): OFI fi_getinfo() failed (ofi_init.c:986:mpi_init_hook:No data "
            "available)\n",
            "LOG013",
        ),
        (
            "r0 | MPI_Allreduce returned error code 15: b'MPI_ERR_TRUNCATE: message truncated'\n",
            "LOG003",
        ),
        (
            "n1:7:9 [0] NCCL WARN NET/IB : req 0/1 tag 5 peer 10.0.0.2<41000> collective mismatch error, "
            "local size 8 remote size 4\n",
            "LOG003",
        ),
        (
            "n1:7:9 [0] NCCL WARN NET/Socket : peer 10.0.0.2<41000> message truncated : receiving 8 bytes "
            "instead of 4. If you believe your socket network is in healthy state\n",
            "LOG003",
        ),
    ],
)
def test_what_a_transport_writes_is_told(tmp_path: Path, text: str, rule: str) -> None:
    (finding,) = diagnose(tmp_path, EPOCHS + text)
    assert finding.rule == rule


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        ("mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated", "EXIT009"),
        ("mpi4py.MPI.Exception: MPI_ERR_OTHER: known error not in list", "LOG012"),
        ("mpi4py.MPI.Exception: MPI_ERR_RANK: invalid rank", "EXIT002"),
    ],
)
def test_an_exception_of_mpi_is_the_scripts_own_if_no_peer_is_in_it(
    tmp_path: Path, error: str, rule: str
) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/w/fit.py", line 9, in <module>\n    comm.Barrier()\n'
        f'  File "mpi4py/MPI/Comm.pyx", line 568, in mpi4py.MPI.Comm.Barrier\n{error}\n'
    )
    assert diagnose(tmp_path, text)[0].rule == rule


def test_a_pod_that_is_taken_down_after_its_work_is_silent(tmp_path: Path) -> None:
    ended = "*** SIGTERM received by PID 36 (TID 36) on cpu 5 from PID 1; stack trace: ***\n"
    assert diagnose(tmp_path, EPOCHS + "Training finished.\n" + ended) == []
    (finding,) = diagnose(tmp_path, EPOCHS + ended)
    assert finding.rule == "LOG012"
