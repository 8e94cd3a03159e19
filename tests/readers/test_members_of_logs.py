"""Logs of several members, under any logger's prefix: who is the cause, in the job's words, and who is not.

Nothing of it is recorded: it is worded as the programs' sources word it. Each entry is a set of files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding, Severity
from allaboard.rules.engine.catalogue import load_catalogue

KEY_ERROR = (
    'Traceback (most recent call last):\n  File "/job/data.py", line 31, in __getitem__\n    return '
    "self.rows[key]\nKeyError: 'n01440764'\n"
)
OUT_OF_MEMORY = (
    'Traceback (most recent call last):\n  File "/job/fit.py", line 57, in step\n    loss.backward()\n  File '
    '"/opt/py/lib/python3.12/site-packages/torch/_tensor.py", line 600, in backward\n    '
    "torch.autograd.backward(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 3 "
    "has a total capacity of 79.10 GiB\n"
)
C10D = (
    'Traceback (most recent call last):\n  File "/job/fit.py", line 12, in <module>\n    init()\n  File '
    '"/opt/py/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 1710, in '
    "init_process_group\n    store, rank, world_size = next(rendezvous_iterator)\n"
)
TAKEN = (
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
    "address. port: {0}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"
)
WATCHDOG = (
    "[rank{0}]:[E612 08:00:01.000000000 ProcessGroupNCCL.cpp:685] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=900000) ran "
    "for 900020 milliseconds before timing out.\n"
)
LEADER_GONE = (
    "F0612 08:00:05.000001     315 client.h:80] Terminating process because the JAX distributed service "
    "detected fatal errors. absl::Status: UNAVAILABLE: Failed to send RPC to coordination service. Either "
    "the "
    "leader task was preempted/died/restarted unexpectedly or this task is experiencing network issues.\n"
)
TIME_LIMIT = (
    "slurmstepd: error: *** JOB 77 ON n4 CANCELLED AT 2026-03-02T03:04:05 DUE TO TIME LIMIT ***\n"
)
LIGHTNING = "Initializing distributed: GLOBAL_RANK: {0}, MEMBER: {1}/{2}\n"
DEEPSPEED = (
    "[2024-05-02 10:00:01,100] [WARNING] [runner.py:212:fetch_hostfile] Unable to find hostfile, will "
    "proceed with training with local resources only.\n[2024-05-02 10:00:01,300] [INFO] "
    "[runner.py:585:main] cmd = /usr/bin/python3 -u -m deepspeed.launcher.launch --world_info=e30= "
    "--master_addr=10.3.0.2 --master_port=29600 tune.py --epochs 3\n[2024-05-02 10:00:04,500] [INFO] "
    "[launch.py:151:main] nnodes={0}, num_local_procs=4, node_rank={1}\n"
)
CHAIN = (
    "UnavailableError: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.4.0.7:2222: Failed "
    "to "
    "connect to remote host: Connection refused\nAdditional GRPC error information from remote target "
    "/job:ps/replica:0/task:2/device:CPU:0 while calling /tensorflow.eager.EagerService/Enqueue:\n"
    ":UNKNOWN:failed to connect to all addresses {{grpc_status:14}}\nAdditional GRPC error information from "
    "remote target /job:{0}/replica:0/task:{1} while calling /tensorflow.eager.EagerService/Enqueue:\n"
    ':UNKNOWN:Error received from peer ipv4:10.4.0.3:2222 {{grpc_message:"failed to connect to all '
    "addresses\\nAdditional GRPC error information from remote target "
    '/job:ps/replica:0/task:2/device:CPU:0", grpc_status:14}}\n'
)
LOST_STORE = (
    "[W612 08:00:01.000000000 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=3, addr=[n1]:40112, "
    "remote=[{0}]:29777): Broken pipe\nTraceback (most recent call last):\n  File "
    '"/opt/py/lib/python3.12/site-packages/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py", '
    "line 114, in _call_store\n    return getattr(self._store, store_op)(*args, **kwargs)\n"
    "torch.distributed.DistNetworkError: {1}\n\nThe above exception was the direct cause of the following "
    'exception:\n\nTraceback (most recent call last):\n  File "/opt/py/bin/torchrun", line 8, in <module>\n '
    "   "
    'sys.exit(main())\n  File "/opt/py/lib/python3.12/site-packages/torch/distributed/elastic/agent/server/'
    'api.py", line 900, in _invoke_run\n    {2}\n  File "/opt/py/lib/python3.12/site-packages/torch/'
    'distributed/elastic/rendezvous/c10d_rendezvous_backend.py", line 116, in {3}\n    raise '
    "RendezvousConnectionError(\ntorch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The "
    "connection to the C10d store has failed. See inner exception for details.\n"
)
FULL_MESH = (
    "RuntimeError: Gloo connectFullMesh failed with "
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] "
    "timed out connecting: SO_ERROR: Connection refused, remote=[{0}]:9111 (rank={1}, size=8, local=[{2}])\n"
)
FALLBACK = (
    "[rank{0}]:[W612 08:00:01.000000000 ProcessGroupGloo.cpp:760] Warning: Unable to resolve hostname to a "
    "(local) address. Using the loopback address as fallback. Manually set the network interface to bind to "
    "with GLOO_SOCKET_IFNAME. (function operator())\n"
)
ENGINE = (
    '(APIServer pid=7) Traceback (most recent call last):\n(APIServer pid=7)   File "/usr/local/bin/vllm", '
    "line "
    "10, in <module>\n(APIServer pid=7)     sys.exit(main())\n(APIServer pid=7) RuntimeError: {0}\n"
)
SUMMARY = (
    "============================================================\nfit.py FAILED\n"
    "------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n"
    "------------------------------------------------------------\nRoot Cause (first observed failure):\n"
    "[0]:\n  time      : 2026-03-02_08:00:09\n  host      : {0}\n  rank      : {1} (local_rank: {2})\n  "
    "exitcode  : 1 (pid: 912)\n  error_file: <N/A>\n  traceback : To enable traceback see: "
    "https://pytorch.org/docs/stable/elastic/errors.html\n"
    "============================================================\n"
)


def prefixed(prefix: str, text: str) -> str:
    """Return the text with the prefix before every line; ``{n}`` in it counts the lines."""
    lines = text.rstrip("\n").split("\n")
    return "".join(f"{prefix.replace('{n}', str(n % 10))}{line}\n" for n, line in enumerate(lines))


def slurm_env(name: str, file: str) -> str:
    """Return the traceback of a variable that is not set."""
    return (
        'Traceback (most recent call last):\n  File "/job/go.py", line 7, in <module>\n    start()\n  File '
        f"\"{file}\", line 60, in read\n    return int(os.environ['{name}'])\nKeyError: '{name}'\n"
    )


PREFIXES = (
    "(Worker_TP3 pid=9120) ERROR 11-02 10:11:1{n} [multiproc_executor.py:7{n}0] ",
    "(EngineCore_DP0 pid=77) (Worker_TP1 pid=9120) ERROR 11-02 10:11:1{n} [multiproc_executor.py:70{n}] ",
    "2026-03-02 08:00:0{n}.123 | ERROR    | __main__:main:4{n} - ",
    "[2026-03-02 08:00:0{n},123][trainer.loop][ERROR] - ",
    "2026-03-02T08:00:0{n}.123456789Z stderr F ERROR:root:",
    "ERROR:trainer:",
    "[ERROR] [fit.py:11{n}:run] ",
    "Mar  2 08:00:0{n} gpu-a7 python3[9120]: ",
    "E0302 08:00:0{n}.123456   9120 launcher.py:3{n}] ",
    "trainer-7b9c-x2k9q trainer 2026-03-02 08:00:0{n} ERROR ",
    "[pod/sft-worker-0/pytorch] 2026-03-02 08:00:0{n} ERROR fit - ",
    "[08:00:0{n}] ERR> ",
    "<131>Mar  2 08:00:0{n} gpu-a7 app: ",
    "{n}0:00.12 | stderr | ",
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_traceback_under_any_logger_s_prefix_is_read(tmp_path: Path, prefix: str) -> None:
    (finding,) = findings_on(tmp_path, {"job.log": prefixed(prefix, KEY_ERROR)})
    assert finding.severity is Severity.ERROR and "fix /job/data.py:31" in finding.fix
    assert "raised KeyError at data.py:31" in finding.summary and "process 0" not in finding.summary


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_victims_timeouts_are_not_told_beside_the_cause(tmp_path: Path, prefix: str) -> None:
    ranks = "".join(f"[rank2]: {line}\n" for line in OUT_OF_MEMORY.splitlines())
    text = ranks + "".join(map(WATCHDOG.format, (0, 1, 3)))
    (finding,) = findings_on(tmp_path, {"job.log": prefixed(prefix, text)})
    assert (finding.rule, [w.rank for w in finding.who]) == ("RES001", [2])


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("2026-03-02 08:00:0{n} [rank 6] ERROR fit: ", 6),
        ("[RANK=6][2026-03-02 08:00:0{n}] ", 6),
        ("ERROR 08:00:0{n} (global_rank: 6) ", 6),
        ("[1,mpirank:6,algo-2]<stderr>:", 6),
        ("(VllmWorker rank=6 pid=713) ERROR 03-02 08:00:0{n} [multiproc_executor.py:47{n}] ", 6),
        ("6: 2026-03-02 08:00:0{n} ERROR ", 6),
        ("[1,6]<stderr>:ERROR:root:", 6),
    ],
)
def test_a_prefix_that_names_a_rank_names_the_culprit(
    tmp_path: Path, prefix: str, rank: int
) -> None:
    (finding,) = findings_on(tmp_path, {"job.log": prefixed(prefix, KEY_ERROR)})
    assert [w.rank for w in finding.who] == [rank]


def test_interleaved_tracebacks_of_two_pods_are_read_apart(tmp_path: Path) -> None:
    other = KEY_ERROR.replace("31", "47").replace("KeyError: 'n01440764'", "ValueError: empty")
    lines = zip(KEY_ERROR.splitlines(), other.splitlines(), strict=True)
    text = "".join(f"gpu-1> {first}\ngpu-2> {second}\n" for first, second in lines)
    findings = findings_on(tmp_path, {"job.log": text})
    assert [f.fix.partition(";")[0] for f in findings] == [
        "fix /job/data.py:31",
        "fix /job/data.py:47",
    ]
    assert [w.host for f in findings for w in f.who] == ["gpu-1", "gpu-2"]


ANSWERS: dict[str, tuple[dict[str, str], tuple[str, list[str], str, str, str]]] = {
    # name: the files; the rule, whom it names, words of the summary, words of the advice, what is not said
    "gloo is given NCCL's list": (
        {"r.log": prefixed(
            "(TrainWorker pid=81, ip=10.9.0.4) ERROR 03-02 08:00:0{n} worker_base.py:38{n}] ",
            C10D + "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/"
            "device.cc:84] ifa != nullptr. Unable to find address for: ^lo,docker0\n")},
        ("EXIT002", ["pid 81"], "'^lo,docker0', a list that only NCCL knows", "GLOO_SOCKET_IFNAME=", "fix /"),
    ),
    "gloo is told an interface that is not there": (
        {"rank2.log": C10D + "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] ifa != "
        "nullptr. Unable to find interface for: ib9\n"},
        ("EXIT002", ["worker 2"], "the interface ib9", "GLOO_SOCKET_IFNAME=", "fix /"),
    ),
    "torchrun's summary beats the pod's name": (
        {"sft-worker-3.log": KEY_ERROR + SUMMARY.format("sft-worker-3", 13, 1)},
        ("EXIT002", ["worker 13"], "raised KeyError", "fix /job/data.py:31", "worker 3"),
    ),
    "the process's own word beats the file's": (
        {"node-1.log": "step 1\n", "worker-1.log": LIGHTNING.format(5, 6, 8) + "LOCAL_RANK: 1 - "
         "CUDA_VISIBLE_DEVICES: [0,1]\n" + KEY_ERROR},
        ("EXIT002", ["worker 5"], "raised KeyError", "fix /job/data.py:31", "worker 1"),
    ),
    "tasks have their job's names": (
        {"mnist-chief-0.log": "step 10\n", "mnist-ps-1.log": KEY_ERROR, "mnist-worker-0.log": "step 9\n"},
        ("EXIT002", ["ps 1"], "ps 1 raised KeyError", "fix /job/data.py:31", "rank 1"),
    ),
    "a folder names the task": (
        {"ps-1/main.log": "serving\n", "worker-0/main.log": KEY_ERROR, "chief/main.log": "step 4\n"},
        ("EXIT002", ["worker 0"], "worker 0 raised KeyError", "fix /job/data.py:31", "(rank 0"),
    ),
    "the master of a PyTorchJob is not rank 0 of the workers": (
        {"sft-master-0.txt": "step 1\n", "sft-worker-0.txt": KEY_ERROR},
        ("EXIT002", ["worker 0"], "worker 0 raised KeyError", "fix /job/data.py:31", "(rank 0"),
    ),
    "the strategy's own word for the task": (
        {"a.log": "INFO:tensorflow:MultiWorkerMirroredStrategy with cluster_spec = {'chief': ['a:1'], "
        "'worker': ['b:1', 'c:1']}, task_type = 'worker', task_id = 1, num_workers = 3\n" + KEY_ERROR,
         "b.log": "INFO:tensorflow:MultiWorkerMirroredStrategy with cluster_spec = {}, task_type = 'chief', "
         "task_id = 0, num_workers = 3\nstep 1\n"},
        ("EXIT002", ["worker 1"], "worker 1 raised KeyError", "fix /job/data.py:31", "a process"),
    ),
    "a relay is not accused": (
        {"chief.log": CHAIN.format("worker", 4)},
        ("EXIT005", ["ps 2"], "ps 2 did not answer worker 4", "log of ps 2", "worker 4 did not answer"),
    ),
    "a chief passes on": (
        {"x.log": CHAIN.format("chief", 0)},
        ("EXIT005", ["ps 2"], "ps 2 did not answer chief 0", "log of ps 2", "chief 0 did not answer"),
    ),
    "who finished first": (
        {"rank0.log": "epoch 4\nTraining finished in 81 min\n", "rank1.log": "epoch 4\n" + LEADER_GONE,
         "rank2.log": "epoch 4\n" + LEADER_GONE},
        ("EXIT004", ["worker 0"], "process 0 finished ('Training finished in 81 min')", "shutdown()",
         "dmesg"),
    ),
    "a rank that finished while the others waited": (
        {"rank0.log": "step 9\nAll done.\n", "rank1.log": "step 9\n" + WATCHDOG.format(1),
         "rank2.log": "step 9\n" + WATCHDOG.format(2)},
        ("EXIT004", ["worker 0"], "worker 0 finished ('All done.')", "same number of", "dmesg"),
    ),
    "who saved a checkpoint did not finish": (
        {"rank0.log": "step 9\ncheckpoint saved, done\n", "rank1.log": "step 9\n" + LEADER_GONE},
        ("EXIT005", ["worker 0"], "went away", "dmesg", "finished ("),
    ),
    "a limit ends a wait": (
        {"slurm-77.out": LIGHTNING.format(0, 1, 16) + LIGHTNING.format(1, 2, 16) + TIME_LIMIT},
        ("JOIN001", [], "2 of 16 members came", "srun --ntasks=16", "ask for more time"),
    ),
    "a limit of PBS ends a wait": (
        {"job.o77": "initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/2\n=>> PBS: job killed: walltime 3609 "
        "exceeded limit 3600\n"},
        ("JOIN001", [], "1 of 2 members came", "start 2 processes", "ask for more time"),
    ),
    "a limit ends what had trained": (
        {"slurm-77.out": "".join(LIGHTNING.format(n, n + 1, 2) for n in (0, 1)) + "All distributed processes "
         "registered. Starting with 2 processes\nEpoch 3: 40%\n" + TIME_LIMIT},
        ("EXIT001", [], "time limit", "--time", "members came"),
    ),
    "a limit ends what had failed": (
        {"slurm-77.out": KEY_ERROR + TIME_LIMIT},
        ("EXIT002", ["a process of slurm-77.out"], "raised KeyError", "fix /job/data.py:31", "time limit"),
    ),
    "PBS's limit alone": (
        {"job.o77": "step 1\n=>> PBS: job killed: walltime 3609 exceeded limit 3600\n"},
        ("EXIT001", [], "PBS ended the job at its time limit", "walltime=", "members came"),
    ),
    "more processes than members": (
        {"job.log": C10D + "RuntimeError: Timed out initializing process group in store based barrier on "
        "rank: "
         "1, for key: store_based_barrier_key:1 (world_size=2, num_workers_joined=4, timeout=0:30:00)\n"},
        ("JOIN005", [], "4 processes joined a world of 2", "pgrep", "fix /"),
    ),
    "more processes than members, still waiting": (
        {"job.log": "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize "
         "process group for rank: 0, key: store_based_barrier_key:1 (world_size=2, worker_count=4, "
         "timeout=0:30:00)\n"},
        ("JOIN005", [], "4 processes joined a world of 2", "pgrep", "no log"),
    ),
    "fewer than members": (
        {"job.log": C10D + "RuntimeError: Timed out initializing process group in store based barrier on "
        "rank: 1, for key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)\n"},
        ("JOIN001", [], "3 of 4 members came", "no log", "joined a world"),
    ),
    "the store is lost while it trains": (
        {"job.log": LOST_STORE.format(
            "10.5.0.1", "failed to recv, got 0 bytes", "num_nodes_waiting = rdzv_handler.num_nodes_waiting()",
            "_call_store")},
        ("EXIT005", [], "10.5.0.1:29777 was lost while the job ran", "port of its own", "did not reach"),
    ),
    "the store is lost on one host": (
        {"job.log": LOST_STORE.format(
            "::ffff:127.0.0.1", "Broken pipe", "num_nodes_waiting = rdzv_handler.num_nodes_waiting()",
            "_call_store")},
        ("EXIT005", [], "127.0.0.1:29777 was lost", "--standalone", "did not reach"),
    ),
    "the store was never reached": (
        {"job.log": LOST_STORE.format(
            "10.5.0.1", "Connection refused", "backend = create_backend(params)", "_create_tcp_store")},
        ("JOIN007", [], "did not reach", "nc -vz", "was lost"),
    ),
    "each host is alone (DeepSpeed)": (
        {"node-a.log": DEEPSPEED.format(1, 0) + "{'loss': 1.2}\n",
         "node-b.log": DEEPSPEED.format(1, 0) + C10D + TAKEN.format(29600)},
        ("JOIN010", [], "2 hosts each started a job of their own", "--hostfile", "end that program"),
    ),
    "each host is alone (Lightning)": (
        {"host1.out": "".join(LIGHTNING.format(n, n + 1, 2) for n in (0, 1)) + "Epoch 1\n",
         "host2.out": "".join(LIGHTNING.format(n, n + 1, 2) for n in (0, 1)) + "Epoch 1\n"},
        ("JOIN010", [], "2 hosts each started a job of their own", "num_nodes=N", "members came"),
    ),
    "each host is alone (TensorFlow)": (
        {f"worker-{n}.log": "INFO:tensorflow:Single-worker MultiWorkerMirroredStrategy with local_devices = "
         "('/device:GPU:0',), communication = CommunicationImplementation.AUTO\nepoch 1\n" for n in (0, 1)},
        ("JOIN010", [], "2 hosts each started a job of their own", "TF_CONFIG", "members came"),
    ),
    "the job holds its own port": (
        {"slurm-1.out": "".join(f"{n}: {line}\n" for n in (2, 3)
         for line in (C10D + TAKEN.format(2345)).splitlines())},
        ("NET005", [], "the job itself holds port 2345: tasks 2, 3", "SLURM_NODEID", "end that program"),
    ),
    "the job holds its own port (torch 1)": (
        {"slurm-1.out": "".join(f"{n}: {line}\n" for n in (1, 2, 3) for line in (
            C10D.replace("distributed_c10d.py", "rendezvous.py") + "RuntimeError: Address already in use\n"
         ).splitlines())},
        ("EXIT002", ["worker 1", "worker 2", "worker 3"], "which the job itself holds", "SLURM_NODEID",
         "end the program"),
    ),
    "rank 3 looks for rank 0 on its own host": (
        {"job.log": "[rank3]:[E302 08:00:00.000000000 socket.cpp:1028] [c10d] The client socket has timed "
         "out after 60000ms while trying to connect to (127.0.0.1, 29500).\n"},
        ("JOIN007", [], "127.0.0.1 is on every host that host itself", "MASTER_ADDR", "worker"),
    ),
    "rank 3 does not find rank 0": (
        {"job.log": "[rank3]:[E302 08:00:00.000000000 socket.cpp:1028] [c10d] The client socket has timed "
         "out after 60000ms while trying to connect to (node0, 29500).\n"},
        ("JOIN007", [], "nobody answered at node0:29500", "start rank 0", "that host itself"),
    ),
    "another program holds the port": (
        {"slurm-1.out": C10D + TAKEN.format(2345)},
        ("NET005", [], "port 2345 was taken", "ss -ltnp", "the job itself"),
    ),
    "a rank fell back to loopback": (
        {"rank6.log": FALLBACK.format(6), "rank1.log": "[rank1]:[E ProcessGroupGloo.cpp:144] Gloo "
         "connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error\n"},
        ("NET009", ["worker 6"], "rank 6 fell back to the loopback address", "GLOO_SOCKET_IFNAME", "file://"),
    ),
    "gloo of a rank is on loopback": (
        {"job.log": "(Worker pid=51) " + FULL_MESH.format("127.0.0.1", 5, "127.0.1.1") + ENGINE.format(
            "Engine process failed to start. See stack trace for the root cause.")},
        ("NET009", ["worker 5"], "gloo of rank 5 is on 127.0.1.1", "/etc/hosts", "vllm:10"),
    ),
    "a server only refers to the cause": (
        {"job.log": prefixed("(Worker_TP0 pid=9) ERROR 03-02 08:00:0{n} [core.py:1{n}] ", OUT_OF_MEMORY)
         + ENGINE.format("Worker failed with error 'CUDA out of memory', please check the stack trace "
         "above for the root cause")},
        ("RES001", ["pid 9"], "ran out of GPU memory", "smaller batches", "pid 7"),
    ),
    "a server that only refers is told if it is alone": (
        {"job.log": ENGINE.format("Engine core initialization failed. See root cause above. Failed core "
                                  "proc(s): {}")},
        ("EXIT002", ["pid 7"], "raised RuntimeError", "above", "worker"),
    ),
    "NCCL is told to use lo": (
        {"job.log": "n1:5:5 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to lo\nn1:5:9 [0] "
         "misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 127.0.0.1<40001> failed : Connection "
         "refused\n"},
        ("NET009", [], "NCCL was told to use lo", "unset NCCL_SOCKET_IFNAME", "nc -vz"),
    ),
    "NCCL found lo alone": (
        {"job.log": "n1:5:5 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\nn1:5:9 [0] "
        "misc/socket.cc:570 NCCL WARN socketPollConnect: connect to 127.0.0.1<40001> returned Connection "
        "refused, exceeded error retry count (35)\n"},
        ("NET009", [], "it found no other interface", "NCCL_SOCKET_IFNAME=", "nc -vz"),
    ),
    "NCCL cannot reach another host": (
        {"job.log": "n1:5:5 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\nn1:5:9 [0] "
         "misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.9<40001> failed : No route to "
         "host\n"},
        ("JOIN004", [], "could not connect to 10.0.0.9", "ip route get", "lo ("),
    ),
    "Horovod's tensors are one fact": (
        {"job.log": "[2026-03-02 08:00:01.1: W /tmp/horovod/common/stall_inspector.cc:107] Stalled ops:\n"
         + "".join(f"HorovodAllreduce_layer{n} [missing ranks: 2, 5]\n" for n in range(40))},
        ("LOG001", ["worker 2", "worker 5"], "ranks 2 and 5 did not submit 40 tensors", "py-spy", "worker 0"),
    ),
    "outside of a step (JAX)": (
        {"job.log": slurm_env("SLURM_LOCALID",
         "/opt/py/lib/python3.12/site-packages/jax/_src/clusters/slurm_cluster.py")},
        ("EXIT002", [], "found no SLURM_LOCALID", "srun python", "fix /job"),
    ),
    "outside of a step (script)": (
        {"job.log": slurm_env("SLURM_NTASKS", "/job/env.py")},
        ("EXIT002", [], "found no SLURM_NTASKS", "srun python", "fix /job"),
    ),
    "outside of mpirun": (
        {"job.log": slurm_env("OMPI_COMM_WORLD_RANK", "/job/env.py")},
        ("EXIT002", [], "found no OMPI_COMM_WORLD_RANK", "mpirun -np", "fix /job"),
    ),
}  # fmt: skip


def findings_on(folder: Path, files: dict[str, str]) -> tuple[Finding, ...]:
    """Return the findings on files with these texts."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    paths = [folder] if len(files) > 1 else [folder / name for name in files]
    return diagnose_paths(paths, load_catalogue()).findings


@pytest.mark.parametrize("name", ANSWERS)
def test_the_cause_is_the_only_error_that_is_told(tmp_path: Path, name: str) -> None:
    files, (rule, who, says, fix, never) = ANSWERS[name]
    findings = [f for f in findings_on(tmp_path, files) if f.severity is Severity.ERROR]
    assert [f.rule for f in findings] == [rule], [f.summary for f in findings]
    (finding,) = findings
    assert [w.name for w in finding.who] == who, finding.summary
    assert says in finding.summary and fix in finding.fix, f"{finding.summary}\n{finding.fix}"
    assert never not in f"{finding.summary} {finding.fix} {' '.join(map(str, finding.who))}"
    assert "process 0 raised" not in finding.summary


def test_each_task_has_its_own_message(tmp_path: Path) -> None:
    text = KEY_ERROR.replace(
        "KeyError: ", "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: of the "
    )
    tasks = ("chief-0", "ps-0", "worker-0")
    (finding,) = findings_on(tmp_path, {f"m-{t}.log": text.replace("n01440764", t) for t in tasks})
    assert [w.name for w in finding.who] == ["chief 0", "ps 0", "worker 0"]
    evidence = " ".join(map(str, finding.evidence))
    assert all(t in evidence for t in tasks) and "INTERNAL" not in finding.summary
    assert "fix /" not in finding.fix


def test_a_loader_that_a_bus_error_ended_is_one_finding(tmp_path: Path) -> None:
    text = (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
        "memory (shm).\n"
        + C10D.replace("torch/distributed/distributed_c10d.py", "torch/utils/data/dataloader.py")
        + "RuntimeError: DataLoader worker (pid 61) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory.\n"
    )
    (finding,) = findings_on(
        tmp_path, {"pod-worker-4.log": text + SUMMARY.format("pod-worker-4", 9, 1)}
    )
    assert (finding.rule, [w.rank for w in finding.who]) == ("EXIT007", [9])
    assert "--shm-size" in finding.fix and "caught" not in " ".join(map(str, finding.evidence))


def test_a_traceback_in_a_json_record_is_read_with_its_line(tmp_path: Path) -> None:
    records = [
        {"time": "2026-03-02T08:00:00Z", "level": "INFO", "message": "step 1"},
        {"level": "ERROR", "message": "the run failed", "exc_info": KEY_ERROR},
    ]
    (finding,) = findings_on(tmp_path, {"job.log": "".join(map(as_json_line, records))})
    assert finding.severity is Severity.ERROR and finding.fix.startswith("fix /job/data.py:31")
    assert finding.fix.endswith("job.log:2")


def as_json_line(record: dict[str, object]) -> str:
    """Return a record as a structured logger writes it."""
    return json.dumps(record) + "\n"


HEALTHY: dict[str, dict[str, str]] = {
    "a logged exception after which the program goes on": {
        "job.log": prefixed("2026-03-02 08:00:0{n} INFO fit: ", "step 1\nstep 2\n")
        + prefixed("2026-03-02 08:00:0{n} ERROR fit: ", KEY_ERROR)
        + prefixed("2026-03-02 08:00:0{n} INFO fit: ", "step 3\nstep 4\n")
    },
    "an exception in a JSON record after which the program goes on": {
        "job.log": as_json_line({"level": "INFO", "message": "step 1"})
        + as_json_line({"level": "ERROR", "message": "retry", "exc_info": KEY_ERROR})
        + as_json_line({"level": "INFO", "message": "step 2"})
    },
    "JSON records without a traceback": {
        "job.log": as_json_line({"message": "Error 404: retried"})
    },
    "one host without a hostfile": {"job.log": DEEPSPEED.format(1, 0) + "{'loss': 1.2}\n"},
    "two runs of one host": {
        f"run{n}.log": DEEPSPEED.format(1, 0) + "{'loss': 1.2}\n" for n in (1, 2)
    },
    "two hosts with a hostfile": {
        f"host{n}.log": DEEPSPEED.format(2, n) + "{'loss': 1.2}\n" for n in (0, 1)
    },
    "a fallback on one host": {"rank0.log": FALLBACK.format(0) + "step 1\n"},
    "NCCL on lo on one host": {
        "job.log": "n1:5:5 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to lo\nn1:5:5 [0] NCCL INFO "
        "NET/Socket : Using [0]lo:127.0.0.1<0>\nstep 1\n"
    },
    "a slow start of Lightning": {
        "job.log": "".join(LIGHTNING.format(n, n + 1, 2) for n in (0, 1))
        + "All distributed processes registered. Starting with 2 processes\nEpoch 0: 10%\n"
    },
    "one rank's log of Lightning": {"rank1.log": LIGHTNING.format(1, 2, 4) + "Epoch 0: 10%\n"},
    "a barrier that waits": {
        "job.log": "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize "
        "process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=2, "
        "timeout=0:30:00)\nINFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier "
        "for key:store_based_barrier_key:1 with 4 nodes.\nstep 1\n"
    },
    "a job that ends": {
        "rank0.log": "step 9\nTraining done\n",
        "rank1.log": "step 9\nTraining done\n",
    },
    "a heartbeat to torchrun's store that fails at the end": {
        "job.log": "step 9\n[W612 08:00:01.000000000 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl("
        "fd=3, addr=[n1]:40112, remote=[n0]:29777): Broken pipe\nW0612 08:00:02.439000 8390 "
        "torch/distributed/"
        "elastic/rendezvous/dynamic_rendezvous.py:1298] The node 'n1_8390_0' has failed to shutdown the "
        "rendezvous 'job' due to an error of type RendezvousConnectionError.\nTraining complete\n"
    },
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_neighbour_has_no_error(tmp_path: Path, name: str) -> None:
    assert [
        f.summary for f in findings_on(tmp_path, HEALTHY[name]) if f.severity is Severity.ERROR
    ] == []


def test_a_pod_s_log_names_the_pod(tmp_path: Path) -> None:
    (finding,) = findings_on(
        tmp_path, {"job.log": prefixed("[pod/sft-worker-0/pytorch] ", KEY_ERROR)}
    )
    assert [w.host for w in finding.who] == ["sft-worker-0"]


def test_thirty_two_ranks_and_one_culprit(tmp_path: Path) -> None:
    files = {f"rank_{n}.log": f"step 1\n{WATCHDOG.format(n)}" for n in range(32) if n != 17}
    files["rank_17.log"] = "step 1\n" + OUT_OF_MEMORY
    (finding,) = findings_on(tmp_path, files)
    assert (finding.rule, [w.rank for w in finding.who]) == ("RES001", [17])
