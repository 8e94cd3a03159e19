"""Which of several failures in the logs of one job was the first: threads, members of RPC, losses."""

from __future__ import annotations

from pathlib import Path

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding, Severity
from allaboard.rules.engine.catalogue import load_catalogue

THREAD = (
    "Exception in thread report:\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
    '  File "/job/meter.py", line 26, in report\n    raise KeyError("loss")\nKeyError: \'loss\'\n'
)
WAITED = (
    '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/job/fit.py", line 68, in <module>\n'
    "[rank1]:     dist.all_reduce(grad)\n"
    '[rank1]:   File "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3252, in '
    "all_reduce\n[rank1]:     work.wait()\n[rank1]: RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:129] "
    "Timed out waiting 60000ms for send operation to complete\n"
)
RPC = (
    "[W1126 02:44:09.85 tensorpipe_agent.cpp:723] RPC agent for {} encountered error when reading incoming "
    "request from {}: eof (this error originated at tensorpipe/transport/shm/connection_impl.cc:259){}\n"
)


def read(folder: Path, **files: str) -> tuple[Finding, ...]:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    return diagnose_paths([folder / f"{name}.log" for name in files], load_catalogue()).findings


def test_a_thread_that_failed_is_why_its_rank_waited(tmp_path: Path) -> None:
    (finding,) = read(tmp_path, rank0=WAITED.replace("rank1", "rank0"), rank1=THREAD + WAITED)
    assert (finding.rule, [w.name for w in finding.who]) == ("EXIT002", ["worker 1"])
    assert "meter.py:26" in finding.summary


def test_a_thread_whose_rank_trained_on_is_no_failure(tmp_path: Path) -> None:
    steps = "".join(f"step {n} loss 0.1\n" for n in range(3))
    findings = read(tmp_path, rank1=f"step 0 loss 0.2\n{THREAD}{steps}training done\n")
    assert not [f for f in findings if f.severity is Severity.ERROR]


def test_a_thread_that_only_waited_itself_is_no_cause(tmp_path: Path) -> None:
    thread = THREAD.replace(
        "KeyError: 'loss'", "RuntimeError: Timed out waiting 60000ms for recv operation"
    )
    findings = read(tmp_path, rank1=thread + WAITED)
    assert "EXIT002" not in [f.rule for f in findings]


def test_the_first_member_of_rpc_that_went_lost_no_other(tmp_path: Path) -> None:
    (finding,) = read(
        tmp_path,
        rank0=RPC.format("learner", "actor1", ""),
        rank2=RPC.format("actor2", "actor1", "") + RPC.format("actor2", "learner", ""),
    )
    assert (finding.rule, finding.summary.partition(",")[0]) == ("EXIT005", "actor1")


def test_members_of_rpc_that_leave_at_the_end_are_not_lost(tmp_path: Path) -> None:
    expected = " (this is expected to happen during shutdown)"
    assert read(tmp_path, rank0=RPC.format("a", "b", expected)) == ()
    assert read(tmp_path, rank0=RPC.format("a", "b", "") + "training done\n") == ()


def test_an_exception_that_quotes_the_loss_is_one_finding(tmp_path: Path) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/app/fit.py", line 90, in step\n    raise ValueError\n'
        "ValueError: loss is nan, stopping training\n"
    )
    assert [f.rule for f in read(tmp_path, out="step 1 loss 0.5\n" + raised)] == ["EXIT002"]
    assert read(tmp_path, out="step 1 loss 0.5\nstep 2 loss nan\n")[0].rule == "NUM005"


def test_the_number_that_spawn_gives_its_process_is_a_rank(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/job/fit.py", line 66, in <module>\n    mp.spawn(f)\n'
        '  File "/v/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 211, in join\n'
        "    raise ProcessRaisedException(msg, error_index, failed_process.pid)\n"
        "torch.multiprocessing.spawn.ProcessRaisedException:\n\n"
        "-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
        '  File "/job/fit.py", line 19, in label\n    raise ValueError("seven")\nValueError: seven\n'
    )
    (finding,) = read(tmp_path, out=text)
    assert (finding.rule, [w.name for w in finding.who]) == ("EXIT002", ["worker 1"])


def test_a_barrier_of_init_that_waits_at_the_end_counts_who_came(tmp_path: Path) -> None:
    barrier = (
        "Waiting in store based barrier to initialize process group for rank: 0, key: "
        "store_based_barrier_key:1 (world_size=4, worker_count={}, timeout=0:30:00)\n"
    )
    limit = "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2023-03-03T03:03:03 DUE TO TIME LIMIT ***\n"
    (ended,) = read(tmp_path, out=barrier.format(2) + limit)
    assert (ended.rule, ended.severity) == ("JOIN001", Severity.ERROR) and "2 of 4" in ended.summary
    (waiting,) = read(tmp_path, out=barrier.format(2))
    assert (waiting.rule, waiting.severity) == ("JOIN001", Severity.WARNING)
    assert read(tmp_path, out=barrier.format(2) + barrier.format(4)) == ()
    assert read(tmp_path, out=barrier.format(2) + "epoch 1 loss 0.3\n") == ()
