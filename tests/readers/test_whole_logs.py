"""Whole logs as a user has them: the first thing that is told of a failed job, and nothing of a healthy one.

What is not recorded is worded as the programs' sources word it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Certainty, Finding, Frame, Severity
from allaboard.rules.engine.catalogue import load_catalogue

LOGS = Path(__file__).parent / "logs"
FAILED = {
    # log: the rule, whom it names, words of the summary, words of the advice
    "accelerate": ("EXIT002", "worker 1", "raised RuntimeError at collate.py:19", "fix /home/eve"),
    "cuda_illegal_access": ("LOG006", "worker 3", "wrote or read where it must not", "CUDA_LAUNCH"),
    "loader_killed": ("EXIT007", "worker 2", "lost a DataLoader worker", "num_workers"),
    "spawn_killed": ("EXIT001", "worker 2", "was killed by SIGKILL", "dmesg -T"),
    "compose_killed": ("EXIT001", "a process", "was killed by SIGKILL", "OOMKilled"),
    "docker_json": (
        "EXIT002",
        "a process",
        "raised KeyError at t.py:8 in main",
        "fix /home/u/t.py:8",
    ),
    "deepspeed_killed": (
        "EXIT001",
        "",
        "one of the 2 processes that DeepSpeed started",
        "dmesg -T",
    ),
    "horovodrun_killed": ("EXIT001", "worker 1", "was killed by SIGKILL", "dmesg -T"),
    "lightning_killed": ("EXIT001", "pid 814", "was killed by SIGKILL", "dmesg -T"),
    "mpirun_tagged": (
        "EXIT002",
        "worker 3",
        "raised RuntimeError at collate.py:19",
        "fix /home/eve",
    ),
    "ray_memory": (
        "RES001",
        "",
        "Ray ended 1 workers on 10.0.0.7",
        "ray logs raylet.out -ip 10.0.0.7",
    ),
    "jax_barrier": ("LOG001", "worker 2", "process 2 did not come to the barrier ckpt::0", ""),
    "jax_heartbeat": ("LOG002", "worker 5", "process 5 stopped sending heartbeats", "dmesg"),
    "jax_leader": ("EXIT005", "", "the leader (process 0", "log of process 0"),
    "jax_unhealthy": ("LOG002", "worker 3", "process 3 stopped sending heartbeats", "dmesg"),
    "kubectl_prefix": (
        "EXIT002",
        "a process",
        "raised RuntimeError at collate.py:19",
        "fix /home/eve",
    ),
    "horovodrun": ("EXIT002", "worker 1", "raised FileNotFoundError at data.py:8", "fix /home/eve"),
    "nccl_out_of_memory": ("RES001", "worker 3", "ran out of GPU memory", "smaller batches"),
    "nccl_out_of_memory_unnamed": (
        "RES001",
        "a process",
        "ran out of GPU memory",
        "smaller batches",
    ),
    "nccl_watchdog_stuck": ("LOG010", "", "did not come back for 480 s", "nvidia-smi"),
    "ray_task": ("EXIT002", "pid 2100", "raised ValueError at train.py:22", "fix /home/eve/rt"),
    "kubectl_two_nodes": ("EXIT002", "worker 3", "raised KeyError at train.py:88", "fix /home/eve"),
    "rich_box": ("EXIT002", "a process", "raised KeyError at r.py:5 in step", "fix /home/u/r.py:5"),
    "srun_tf_out_of_memory": ("RES001", "worker 2", "was killed by the kernel", "more memory"),
    "srun_torchrun": ("EXIT002", "worker 3", "raised KeyError at train.py:88", "fix /home/eve"),
    "second_run_failed": ("EXIT002", "a process", "raised KeyError at train.py:88", "fix /home/u"),
    "second_torchrun_failed": ("EXIT002", "worker 1", "raised KeyError at train.py:88", "log:7"),
    "slurm_node_failure": ("EXIT010", "", "Slurm lost node3", "scontrol show node node3"),
    "slurm_not_executable": ("JOIN001", "", "could not start /home/bob/run.sh", "ls -l /home/bob"),
    "slurm_time_limit": (
        "EXIT001",
        "",
        "ended the job at its time limit",
        "#SBATCH --signal=USR1@120",
    ),
    "srun_credential": ("JOIN001", "", "could not start the tasks on node3", "timedatectl"),
    "srun_killed": ("EXIT001", "worker 5", "was killed by SIGKILL", "on node3: dmesg -T"),
    "srun_node_failure": ("EXIT010", "", "Slurm lost node3", "scontrol show node node3"),
    "srun_out_of_memory": ("RES001", "worker 5", "was killed by the kernel", "more memory"),
    "tf_barrier": ("LOG001", "worker 2", "did not come to the barrier WaitForAllTasks", ""),
    "tf_config_task": (
        "EXIT002",
        "a process",
        "raised ValueError at train.py:14",
        "allaboard check",
    ),
    "tf_config_unset": (
        "EXIT002",
        "a process",
        "raised KeyError at train.py:12",
        "allaboard run -n N",
    ),
    "tf_heartbeat": ("LOG002", "worker 2", "worker 2 stopped sending heartbeats", "dmesg"),
    "tf_heartbeat_2023": ("LOG002", "worker 1", "worker 1 stopped sending heartbeats", "dmesg"),
    "tf_out_of_memory": ("RES001", "worker 1", "ran out of GPU memory", "smaller batches"),
    "tf_ps_socket_closed": ("EXIT005", "ps 0", "ps 0 went away", "log of ps 0"),
    "tf_ps_unreachable": ("EXIT005", "ps 1", "ps 1 did not answer", "ss -ltnp"),
    "tf_restarted": ("JOIN005", "worker 1", "worker 1 came a second time", "log of worker 1"),
    "tf_traced": (
        "EXIT002",
        "a process",
        "raised ValueError at m2.py:10 in step",
        "fix /home/u/m2.py:10",
    ),
    "torchrun_hang": ("LOG001", "worker 2", "waited 8000 ms in a collective", "py-spy dump"),
    "torchrun_tee": ("RES001", "worker 3", "ran out of GPU memory", "smaller batches"),
    "lightning": ("EXIT002", "worker 1", "raised IndexError at dm.py:31", "fix /home/eve"),
    "srun_buffered": ("EXIT002", "a process", "raised ValueError at train.py:33", "fix /home/u"),
    "trainer_bar": (
        "EXIT002",
        "a process",
        "raised RuntimeError at collate.py:19",
        "fix /home/eve",
    ),
    # What a framework raises below the user's line is told by its cause.
    "store_timeout": ("EXIT002", "", "the store of the job did not answer in time", "nc -vz"),
    "store_reset": ("LOG012", "", "the connection to the store broke", "log of rank 0 first"),
    "nccl_torch_1": ("EXIT002", "", "failed in NCCL: unhandled cuda error", "NCCL_DEBUG=INFO"),
    "nccl_shm_full": ("RES004", "", "/dev/shm is full", "--shm-size"),
    "nccl_id_timeout": ("EXIT005", "worker 0", "rank 5 waited for rank 0", "ddp_timeout"),
    "nccl_id_timeout_torch_1": ("EXIT002", "worker 0", "rank 5 waited for rank 0", "ddp_timeout"),
    "windows_libuv": ("EXIT002", "", "found no libuv in its build", "set USE_LIBUV=0"),
    "host_not_found": ("EXIT002", "", "could not resolve the name in MASTER_ADDR", "getent hosts"),
    "xla_gpu_fault": ("EXIT002", "", "a fault of its GPU", "dmesg -T | grep -i xid"),
    "xla_no_such_gpu": (
        "EXIT002",
        "worker 5",
        "asked for a GPU that it does not see",
        "nvidia-smi",
    ),
    "tf_raise_from": ("EXIT002", "a process", "at fit.py:21", "fix /home/mia/nets/fit.py:21"),
    "tf_end_of_sequence": ("EXIT002", "", "ran out of input", "repeat()"),
    "tf_cluster_spec": ("EXIT002", "", "no job 'master'; it has 'trainer', 'ps'", "TF_CONFIG"),
    "tf_no_successful_operations": ("EXIT002", "", "InternalError: 2 root", "allaboard diagnose"),
    # The last resort: nothing else explains the end.
    "tf_session_lost": ("LOG012", "", "lost a member that the message does not name", "all other"),
    "tf_connect_failed": ("LOG012", "", "nobody listened at 10.3.0.8:2224", "nc -vz 10.3.0.8 2224"),
    "native_check": ("LOG011", "", "could not start another thread", "ulimit -u"),
    "shell_segfault": ("LOG012", "", "was ended by SIGSEGV", "PYTHONFAULTHANDLER"),
    "pod_killed": ("EXIT001", "", "the container of a worker was killed", "kubectl get pods"),
    "jax_named_barrier": (
        "LOG001",
        "worker 3",
        "process 3 did not come to the barrier weights_r",
        "",
    ),
    "keras_nan": ("NUM005", "", "the loss is nan from epoch 4 on", "learning rate"),
    "tf1_nan": ("NUM005", "", "the loss is nan", "learning rate"),
    "xla_nccl": ("EXIT002", "", "failed in NCCL: unhandled cuda error", "NCCL_DEBUG=INFO"),
    "xla_out_of_memory": ("RES001", "a process", "ran out of memory", ""),
    "xla_rendezvous": ("LOG001", "", "not all 4 devices came", "XLA_FLAGS"),
    "xla_rendezvous_some": ("LOG001", "", "not all 4 devices came", "XLA_FLAGS"),
}
"""What is told first."""
LIBRARY_FAILURES = (
    *("store_timeout", "nccl_torch_1", "nccl_shm_full", "nccl_id_timeout", "windows_libuv"),
    *("nccl_id_timeout_torch_1", "host_not_found", "xla_gpu_fault", "xla_no_such_gpu"),
    *("xla_nccl", "tf_end_of_sequence", "tf_cluster_spec", "tf_no_successful_operations"),
)
"""Logs in which a library raised what is not to be fixed in the user's line."""


def told(path: Path) -> tuple[Finding, ...]:
    return diagnose_paths([path], load_catalogue()).findings


def test_every_log_has_its_answer() -> None:
    assert sorted(p.stem for p in (LOGS / "failed").iterdir()) == sorted(
        [*FAILED, "hub_unreachable", "jax_connect_barrier", "srun_many_killed"]
    )


@pytest.mark.parametrize("name", FAILED)
def test_the_first_thing_that_is_told_of_a_failed_job(name: str) -> None:
    rule, who, says, fix = FAILED[name]
    found = told(LOGS / "failed" / f"{name}.log")
    assert found, "nothing was told"
    first = found[0]
    # Of some processes only the log or the host is known.
    names = [re.sub(r"^(a process) (of|on) .*", r"\1", w.name) for w in first.who]
    assert (first.rule, names) == (rule, [who] if who else [])
    assert first.severity is Severity.ERROR and says in first.summary and fix in first.fix
    assert "(redacted)" not in first.fix
    assert not any("rank -1" in str(e) for f in found for e in f.evidence)


def test_who_failed_without_a_rank_may_be_whom_the_others_waited_for() -> None:
    found = told(LOGS / "failed" / "nccl_out_of_memory_unnamed.log")
    assert "LOG008" not in {f.rule for f in found}


@pytest.mark.parametrize("log", sorted((LOGS / "mended").iterdir()), ids=lambda p: p.stem)
def test_what_went_on_or_was_interrupted_is_no_error(log: Path) -> None:
    found = told(log)
    assert found and Severity.ERROR not in {f.severity for f in found}


def test_a_batch_script_s_last_words_do_not_mend_what_failed(tmp_path: Path) -> None:
    text = (LOGS / "failed" / "second_torchrun_failed.log").read_text()
    log = tmp_path / "slurm-1.out"
    log.write_text(f"{text}Wed Nov 25 10:00:00 UTC 2026\nTraining complete\n")
    assert told(log)[0].severity is Severity.ERROR


@pytest.mark.parametrize("log", sorted((LOGS / "healthy").iterdir()), ids=lambda p: p.stem)
def test_nothing_is_told_of_a_healthy_job(log: Path) -> None:
    assert [f.summary for f in told(log)] == []


def test_of_several_tracebacks_no_exit_code_tells_whose_it_is(tmp_path: Path) -> None:
    text = (LOGS / "failed" / "accelerate.log").read_text()
    other = 'Traceback (most recent call last):\n  File "/h/b.py", line 2, in g\nKeyError: 1\n'
    log = tmp_path / "job.log"
    log.write_text(other + text)
    assert [w.rank for f in told(log) for w in f.who] == [-1, -1]
    assert not any("fell" in e.observed for f in told(log) for e in f.evidence)


def test_who_raised_sends_no_heartbeats_and_a_job_that_ends_well_has_none_to_send() -> None:
    samples = Path(__file__).parent / "samples"
    assert [f.rule for f in told(samples / "tf_raises")] == ["EXIT002"]
    assert told(samples / "tf_finishes") == ()


def test_a_message_of_several_lines_is_no_sign_that_its_process_went_on(tmp_path: Path) -> None:
    log = tmp_path / "rank1.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/h/a.py", line 3, in f\n    g()\n'
        "ValueError: Attempt to convert a value (PerReplica:{\narray([[-0.4, 2.0],\n"
        "[-0.5, 0.1]])\n}) with an unsupported type to a Tensor.\n"
    )
    (one,) = told(log)
    assert one.certainty is Certainty.CERTAIN


def test_what_srun_says_of_many_tasks_is_told_once() -> None:
    (one,) = told(LOGS / "failed" / "srun_many_killed.log")
    assert one.summary == (
        "worker 256, worker 257, worker 258, worker 259 and 252 more were killed by SIGKILL"
    )
    assert len(one.who) == 256 and one.fix.startswith("on node3: dmesg -T")


def test_all_processes_that_a_barrier_of_jax_lists_are_named() -> None:
    (one,) = told(LOGS / "failed" / "jax_connect_barrier.log")
    assert one.rule == "JOIN001" and [w.rank for w in one.who] == [3, 6]
    assert one.summary == "processes 3 and 6 never connected to the coordinator"


@pytest.mark.parametrize(
    "name", [*LIBRARY_FAILURES, *(n for n, expected in FAILED.items() if expected[0] == "LOG012")]
)
def test_a_library_s_failure_is_told_once_and_not_as_the_user_s_mistake(name: str) -> None:
    (one,) = told(LOGS / "failed" / f"{name}.log")
    words = f"{one.summary} {one.fix} {' '.join(map(str, one.evidence))}"
    assert "fix /" not in words and "process 0" not in words and "caught" not in words


def test_the_conclusion_does_not_deny_a_traceback_that_was_read() -> None:
    caught = diagnose_paths([LOGS / "healthy" / "logger_before_traceback.log"], load_catalogue())
    assert "no traceback that ended a process" in caught.conclusion
    without = diagnose_paths([LOGS / "healthy" / "validation_losses.log"], load_catalogue())
    assert "message, traceback, dump" in without.conclusion


@pytest.mark.parametrize(
    "path",
    [
        r"C:\venv\Lib\site-packages\torch\distributed\rendezvous.py",
        r"C:\Users\a b\Python39\lib\threading.py",
        "/opt/conda/envs/nets/lib/python3.9/site-packages/torch/nn/modules/module.py",
        "/opt/conda/lib/python3.9/threading.py",
        "/usr/lib/python3/dist-packages/torch/cuda/__init__.py",
        "/srv/app/libs.zip/horovod/torch/mpi_ops.py",
        "/srv/app/third_party/apex/parallel.py",
        "/home/u/pytorch/torch/distributed/distributed_c10d.py",
    ],
)
def test_installed_archived_and_copied_code_is_a_library_s(path: str) -> None:
    assert not Frame(path, 1, "f").is_user


@pytest.mark.parametrize(
    "path",
    ["/home/u/python/lib/train.py", "train.py", r"C:\work\python\train.py", "/srv/conda/fit.py"],
)
def test_the_user_s_own_code_is_the_user_s(path: str) -> None:
    assert Frame(path, 1, "f").is_user and not Frame("<string>", 3, "raise_from").is_user


def test_an_exception_of_the_user_s_own_inside_a_framework_is_the_user_s(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/h/fit.py", line 9, in run\n    model(x)\n'
        '  File "/v/lib/python3.8/site-packages/torch/nn/parallel/distributed.py", line 10, in forward\n'
        "    output = self.module(*inputs)\n"
        '  File "/h/net.py", line 19, in forward\n    raise RuntimeError("Socket Timeout")\n'
        "RuntimeError: Socket Timeout\n"
    )
    (one,) = told(log)
    assert one.rule == "EXIT002" and one.fix.startswith("fix /h/net.py:19")


def test_who_did_not_reach_the_hub_is_told_what_helps() -> None:
    (one,) = told(LOGS / "failed" / "hub_unreachable.log")
    assert [w.rank for w in one.who] == [0, 1] and "HF_HUB_OFFLINE=1" in one.fix


def test_a_launcher_s_list_tells_nothing_of_what_ranks_wrote_elsewhere(tmp_path: Path) -> None:
    lines = (LOGS / "failed" / "torchrun_hang.log").read_text().split("\n")
    said = [line for line in lines if "[rank" in line]
    (tmp_path / "rank0.log").write_text("\n".join(line for line in said if "[rank0]" in line))
    (tmp_path / "torchrun.log").write_text("\n".join(line for line in lines if "[rank" not in line))
    found = [f for f in told(tmp_path) if f.rule == "LOG001"]
    assert found and not any(f.who for f in found)


def test_a_rank_whose_log_ends_well_does_not_mend_another_s_failure(tmp_path: Path) -> None:
    failure = 'Traceback (most recent call last):\n  File "/h/a.py", line 3, in f\nKeyError: 1\n'
    hook = "".join(f"[rank{{0}}]: {line}\n" for line in failure.splitlines())
    (tmp_path / "rank0.log").write_text(hook.format(0) + "Training finished\n")
    (tmp_path / "rank1.log").write_text(hook.format(1))
    (one,) = told(tmp_path)
    assert one.severity is Severity.ERROR


def test_what_lightning_says_of_a_rank_s_end_is_not_told_beside_its_traceback() -> None:
    # Its bar shows a loss of "nan.0", as Lightning writes NaN.
    assert [f.rule for f in told(LOGS / "failed" / "lightning.log")] == ["EXIT002", "NUM005"]


def test_a_peer_that_was_lost_before_the_job_was_cancelled_is_told(tmp_path: Path) -> None:
    said = "[rank{}]: RuntimeError: [gloo/transport/tcp/pair.cc:5] Connection closed by peer [10.0.0.5]:51\n"
    lost = said.format(0) + said.format(1)
    over = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-24T10:12:13 ***\n"
    log = tmp_path / "slurm-7.out"
    for text, rules in ((lost + over, {"EXIT005", "EXIT008"}), (over + lost, {"EXIT008"})):
        log.write_text(text)
        assert {f.rule for f in told(log)} == rules
