"""Known faults in the words of other versions, and launchers' own errors; and what only looks like them.

Nothing of it is recorded: it is worded as the programs' sources word it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Finding, Severity
from allaboard.rules.engine.catalogue import load_catalogue

C10D = (
    'Traceback (most recent call last):\n  File "/job/fit.py", line 12, in <module>\n    dist.barrier()\n'
    '  File "/opt/py/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 4200, in '
    "barrier\n"
    "    work = group.barrier(opts=opts)\n"
)
NCCL = (
    C10D
    + "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:328, unhandled system error (run "
    "with NCCL_DEBUG=INFO for details), NCCL version 2.23.4\nncclSystemError: System call (e.g. socket, "
    "malloc) or external library call failed or device error.\nLast error:\n"
)
SESSION = (
    'Traceback (most recent call last):\n  File "/job/ps.py", line 31, in <module>\n    sess.run(op)\n'
    '  File "/opt/py/lib/python3.6/site-packages/tensorflow/python/client/session.py", line 960, in '
    "_do_call\n"
    "    raise type(e)(node_def, op, message)\n"
)
JAX = (
    "F0811 04:02:50.400001     910 client.h:77] Terminating process because the JAX distributed service "
    "detected fatal errors. This most likely indicates that another task died; see the other task logs "
    "for more details. absl::Status: "
)
LAUNCH = (
    'Traceback (most recent call last):\n  File "/opt/py/bin/{0}", line 8, in <module>\n    '
    "sys.exit(main())\n"
    '  File "/opt/py/lib/python3.11/site-packages/{1}.py", line 901, in main\n    raise error\n'
)
TORCH_LAUNCH = LAUNCH.format("python", "torch/distributed/launch")
ACCELERATE = LAUNCH.format("accelerate", "accelerate/commands/launch")
DEEPSPEED = LAUNCH.format("deepspeed", "deepspeed/launcher/runner")
HOROVOD = LAUNCH.format("horovodrun", "horovod/runner/launch")
OOM = (
    "OOM when allocating tensor with shape[32,9,9] and type float on "
    "/job:{}/replica:0/task:{}/device:{}:0 by "
)
FAILED: dict[str, tuple[str, str, str, str, str]] = {
    # text: the rule, whom it names, words of the summary, words of the advice, what must not be said
    "h:1:2 [0] NCCL INFO Call to connect returned Connection timed out, retrying\n"
    "h:1:2 [0] include/socket.h:403 NCCL WARN Call to connect failed : Connection timed out": (
        "JOIN004", "", "Connection timed out", "NCCL_SOCKET_IFNAME", "retrying"
    ),
    C10D + "RuntimeError: [/b/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [10.8.8.8]:9917: No "
    "route to host": ("JOIN004", "", "No route to host", "GLOO_SOCKET_IFNAME", "loopback"),
    "All nodes which are allocated for this job are already filled.": (
        "JOIN001", "", "fewer slots", "slots=N", "process 0"
    ),
    "mpirun was unable to launch the specified application as it could not find an executable:\n\n"
    "Executable: python3\nNode: gpu-b\n\nwhile attempting to start process rank 4.": (
        "JOIN001", "", "python3 on gpu-b", "ssh gpu-b which python3", "process 0"
    ),
    "An ORTE daemon has unexpectedly failed after launch and before\ncommunicating back to mpirun.": (
        "JOIN001", "", "could not start its daemon", "--prefix", "process 0"
    ),
    "+ POD_NAME=sft-worker-1\ncommand terminated with exit code 143": (
        "EXIT001", "", "143 is SIGTERM", "kubectl get pods", "network"
    ),
    DEEPSPEED + "subprocess.CalledProcessError: Command '['ssh gpu-b hostname -I']' returned non-zero exit "
    "status 255.": ("JOIN001", "", "cannot reach gpu-b by ssh", "ssh -o BatchMode=yes gpu-b", "process 0"),
    "ssh not successful for host gpu-b:\nConnection closed by 10.8.8.8 port 22\n\n" + HOROVOD
    + "RuntimeError: could not connect to some hosts via ssh": (
        "JOIN001", "", "cannot reach gpu-b", "BatchMode=yes gpu-b", "horovodrun:8"
    ),
    NCCL + "socketPollConnect: Connect to 172.16.9.8<40123> returned 111(Connection refused) errno "
    "115(Operation now in progress)": ("JOIN004", "", "connect to 172.16.9.8, port 40123", "nc -vz", "fix "),
    NCCL + "socketPollConnect: connect to fd00::8%ib0<40123> returned No route to host, exceeded error retry "
    "count after 35 attempts": ("JOIN004", "", "fd00::8%ib0", "NCCL_SOCKET_IFNAME", "fix "),
    "h:1:2 [0] os/linux.cc:328 NCCL WARN ncclOsSocketPollConnect to 172.16.9.8<40123> failed with error "
    "Connection timed out": ("JOIN004", "", "172.16.9.8, port 40123", "nc -vz", "fix "),
    NCCL + "Error: failed to extend /dev/shm/nccl-x1Y2z3 to 33030532 bytes, error: No space left on device "
    "(28)": (
        "RES004", "", "no room", "--shm-size", "fix "
    ),
    "h:1:2 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
    "h:1:2 [0] include/shm.h:41 NCCL WARN Error while creating shared memory segment nccl-shm-recv-1 (size "
    "9637888)": (
        "RES004", "", "no room", "--shm-size", "fix "
    ),
    NCCL + "Error while attaching to shared memory segment /dev/shm/nccl-x1Y2z3 (size 9637888), error: No "
    "such file or directory (2)": ("LOG010", "", "memory of a peer", "--ipc=host", "shm-size"),
    "h:1:2 [0] include/shm.h:41 NCCL WARN Error while attaching to shared memory segment nccl-shm-send-4 "
    "(size 4460544)": ("LOG010", "", "memory of a peer", "--ipc=host", "shm-size"),
    "h:1:2 [0] NCCL INFO NET/Socket : 0 interfaces found\nh:1:2 [0] include/socket.h:312 NCCL WARN Net : "
    "Socket creation failed : Address family not supported by protocol": (
        "LOG005", "", "no network interface", "ip -br address", "fix "
    ),
    NCCL + "NET/Socket : No usable listening interface found": (
        "LOG005", "", "no network interface", "NCCL_SOCKET_IFNAME", "fix "
    ),
    NCCL + "Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_3:1, curr state INIT, next "
    "state RTR": ("LOG010", "", "by RDMA", "NCCL_IB_DISABLE=1", "fix "),
    "h:1:2 [0] init.cc:99 NCCL WARN Cuda failure 'the provided PTX was compiled with an unsupported "
    "toolchain.'": (
        "LOG006", "", "driver of this host is too old", "driver_version", "xid"
    ),
    C10D + "RuntimeError: [/b/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.0.1]:9917: "
    "Connection refused": ("NET009", "", "127.0.0.1", "GLOO_SOCKET_IFNAME", "fix "),
    C10D + "RuntimeError: Gloo connectFullMesh failed with [/b/third_party/gloo/gloo/transport/tcp/"
    "pair.cc:144] no error: SO_ERROR: Connection refused, remote=[127.0.1.1]:9917": (
        "NET009", "", "loopback", "/etc/hosts", "fix "
    ),
    "terminate called after throwing an instance of 'gloo::IoException'\n  what():  "
    "[/b/third_party/gloo/gloo/"
    "transport/tcp/pair.cc:724] connect [127.0.1.1]:9917: Connection refused\nAborted (core dumped)": (
        "NET009", "", "127.0.1.1", "/etc/hosts", "fix "
    ),
    "terminate called after throwing an instance of 'gloo::IoException'\n  what():  "
    "[/b/third_party/gloo/gloo/transport/tcp/pair.cc:724] connect [10.8.8.8]:9917: Connection refused": (
        "JOIN004", "", "10.8.8.8:9917", "GLOO_SOCKET_IFNAME", "loopback"
    ),
    "E0301 01:02:03.4 77 tcp_server_posix.c:284]     bind addr=[::]:4455: Address already in use\n"
    "E0301 01:02:03.4 77 server_chttp2.c:119]        No address added out of total 1 resolved\n"
    "Segmentation fault (core dumped)": ("NET005", "", "port 4455 was taken", "sport = :4455", "SIGSEGV"),
    'E0301 01:02:03.4 77 server_chttp2.cc:40] {"created":"@1","description":"No address added out of total 1 '
    'resolved","referenced_errors":[{"description":"Unable to configure socket","os_error":"Address '
    'already in '
    'use","syscall":"bind"}]}': ("NET005", "", "port was taken", "ss -ltnp", "fix "),
    "2019-03-04 05:06:07.8: E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 7.43G "
    "(7977317632 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory": (
        "RES001", "", "ran out of GPU memory", "nvidia-smi", "process 0"
    ),
    "2021-03-04 05:06:07.8: W tensorflow/core/common_runtime/bfc_allocator.cc:456] Allocator (GPU_1_bfc) "
    "ran out of "
    "memory trying to allocate 1.20GiB (rounded to 1288490240)requested by op MatMul\nIf the cause is memory "
    "fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will help.\n"
    "2021-03-04 05:06:07.9: W tensorflow/core/framework/op_kernel.cc:1767] OP_REQUIRES failed at "
    "matmul_op.cc:1 : "
    "Resource exhausted: " + OOM.format("worker", 3, "GPU") + "allocator GPU_1_bfc": (
        "RES001", "worker 3", "worker 3 ran out of memory", "nvidia-smi", "process 0"
    ),
    SESSION + "tensorflow.python.framework.errors_impl.ResourceExhaustedError: " + OOM.format("ps", 2, "CPU")
    + "allocator cpu\n\t [[node save/RestoreV2]]\nHint: If you want to see a list of allocated tensors "
    "when OOM happens, add report_tensor_allocations_upon_oom.\n": (
        "RES001", "ps 2", "ps 2 ran out of memory", "more memory", "caught"
    ),
    JAX + "ABORTED: 3 unexpectedly tried to connect with a different incarnation. It has likely restarted.": (
        "JOIN005", "worker 3", "process 3 came a second time", "log of process 3", "fix "
    ),
    JAX + "ABORTED: /job:jax_worker/replica:0/task:3 unexpectedly tried to connect with a different "
    "incarnation. "
    "It has likely restarted.": ("JOIN005", "worker 3", "process 3", "log of process 3", "fix "),
    JAX + "ABORTED: Leader incarnation ID mismatch: the coordination  leader (usually slice 0 task 0) has "
    "restarted.": ("JOIN005", "", "the leader", "log of process 0", "fix "),
    JAX + "UNAVAILABLE: Task 3 heartbeat timeout. This indicates that the remote task has failed, got "
    "preempted, or crashed unexpectedly.": ("LOG002", "worker 3", "process 3 stopped", "log", "fix "),
    SESSION + "tensorflow.python.framework.errors_impl.FailedPreconditionError: 2 root error(s) found.\n  "
    "(0) Failed precondition: Device /job:worker/replica:0/task:2/device:GPU:0 current incarnation "
    "doesn't match with one in the group. This usually means this worker has restarted.\n\t [[{{node "
    "CollectiveReduce}}]]\n  (1) Failed precondition: Device /job:worker/replica:0/task:2/device:GPU:0 "
    "current incarnation doesn't match with one in the group.\n0 successful operations.\n0 derived "
    "errors ignored.": (
        "JOIN005", "worker 2", "worker 2 came a second time", "log of worker 2", "raised"
    ),
    SESSION + "tensorflow.python.framework.errors_impl.AbortedError: RecvTensor expects a different device "
    "incarnation: 7 vs. 8. Your worker job was probably restarted. Check your worker job for the reason "
    "why it was "
    'restarted.\n\t [[Node: g = _Recv[send_device="/job:worker/replica:0/task:4/gpu:0"]()]]': (
        "JOIN005", "worker 4", "worker 4 was restarted", "log of worker 4", "raised"
    ),
    SESSION + "tensorflow.python.framework.errors_impl.AbortedError: RecvTensor expects a different device "
    'incarnation: 7 vs. 8. Your worker job ("/job:ps/replica:0/task:1") was probably restarted.': (
        "JOIN005", "ps 1", "ps 1 was restarted", "log of ps 1", "raised"
    ),
    TORCH_LAUNCH + "subprocess.CalledProcessError: Command '['/opt/py/bin/python', '-u', 'fit.py', "
    "'--local_rank=6', '--lr', '0.1']' died with <Signals.SIGBUS: 7>.": (
        "EXIT001", "", "local rank 6 (fit.py) was killed by SIGBUS", "PYTHONFAULTHANDLER", "process 0"
    ),
    ACCELERATE + "subprocess.CalledProcessError: Command '['/opt/py/bin/python', 'dpo.py', '--bf16']' died "
    "with "
    "<Signals.SIGKILL: 9>.": ("EXIT001", "", "dpo.py", "dmesg -T | grep -i 'killed process'", "process 0"),
    ACCELERATE + "subprocess.CalledProcessError: Command '['/opt/py/bin/python', 'dpo.py']' returned "
    "non-zero exit "
    "status 3.": ("EXIT003", "", "(dpo.py) ended with exit code 3", "read what it wrote", "process 0"),
    DEEPSPEED + "RuntimeError: Using hostfile at /job/hostfile but host=gpu-b was not reachable via ssh. "
    "If you are running with a single node please remove /job/hostfile or setup passwordless ssh.": (
        "JOIN001", "", "cannot reach gpu-b by ssh", "ssh -o BatchMode=yes gpu-b hostname", "process 0"
    ),
    "gpu-b: eve@gpu-b: Permission denied (publickey,password).\npdsh@head: gpu-b: ssh exited with exit "
    "code 255": (
        "JOIN001", "", "gpu-b refuses", "ssh-copy-id gpu-b", "process 0"
    ),
    "ssh not successful for host gpu-b:\nssh: connect to host gpu-b port 12345: Connection timed "
    "out\n\n" + HOROVOD
    + "RuntimeError: could not connect to some hosts via ssh": (
        "JOIN001", "", "port 12345 of gpu-b", "nc -vz gpu-b 12345", "horovodrun:8"
    ),
    "ssh: Could not resolve hostname gpu-b: Name or service not known\n-----\nORTE was unable to reliably "
    "start one or more daemons.": ("JOIN001", "", "name gpu-b", "getent hosts gpu-b", "process 0"),
    "There are not enough slots available in the system to satisfy the 144slots that were requested by\nthe "
    "application:\n\n  ./hello": ("JOIN001", "", "fewer slots than the 144", "slots=N", "process 0"),
    "+ POD_NAME=sft-worker-1\n+ POD_NAME=sft-worker-5\n[1,5]<stdout>:step 7 loss 2.5\ncommand terminated "
    "with exit code 137\n-----\nPRTE has lost communication with a remote daemon.\n\n  HNP daemon   : "
    "[[7,0],0] on node sft-launcher-q\n  Remote daemon: [[7,0],6] on node sft-worker-5\n": (
        "EXIT001", "", "sft-worker-5", "kubectl describe pod sft-worker-5", "network"
    ),
    "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[7,0],0] on node head\n  "
    "Remote daemon: [[7,0],2] on node gpu-b\n": ("EXIT010", "", "gpu-b", "gpu-b", "process 0"),
    "/opt/py/jax/_src/xla_bridge.py:201: UserWarning: TPU backend initialization is taking more than 60.0 "
    "seconds. Did you run your code on all TPU hosts? See https://jax.dev\n  warnings.warn(\n": (
        "JOIN001", "", "other hosts of the TPU slice", "--worker=all", "process 0"
    ),
    "2023-03-04 05:06:07.8: F tensorflow/tsl/platform/default/env.cc:74] Check failed: ret == 0 (11 vs. "
    "0)Thread tf_Compute creation via pthread_create() failed.\nAborted (core dumped)": (
        "LOG011", "", "could not start another thread", "ulimit -u", "process 0"
    ),
    "OpenBLAS blas_thread_init: pthread_create failed for thread 30 of 64: Resource temporarily "
    "unavailable": (
        "LOG011", "", "could not start another thread", "pids.max", "process 0"
    ),
    "F0000 00:00:1700000000.123456    4711 mesh.cc:88] Check failed: shards > 0 (0 vs. 0) no device\n*** "
    "Check failure stack trace: ***": (
        "LOG011", "", "mesh.cc:88: Check failed: shards > 0", "mesh.cc", "process 0"
    ),
}  # fmt: skip
HEALTHY = {
    "a connection that is tried again": "h:1:2 [0] NCCL INFO socketPollConnect: connect to 172.16.9.8<40123> "
    "returned Connection refused, retrying (3/34) after sleep for 300 msec\nstep 1 loss 2.0\n",
    "one network has no interface": "h:1:2 [0] NCCL INFO NET/Socket : 0 interfaces found\nh:1:2 [0] NCCL "
    "INFO Using network IB\nstep 1 loss 2.0\n",
    "an allocation that need not succeed": "2021-03-04 05:06:07.8: W tensorflow/core/common_runtime/"
    "bfc_allocator.cc:243] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.29GiB with "
    "freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be "
    "performance gains if more memory were available.\n",
    "memory that is asked for again, in smaller pieces": "2019-03-04 05:06:07.8: E "
    "tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 7.43G (7977317632 bytes) "
    "from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\nEpoch 1/3 step 100 loss 0.52\nEpoch 2/3 step "
    "200 loss 0.41\n",
    "a bind that succeeds on another address": "E0301 01:02:03.4 77 tcp_server_posix.c:284] bind "
    "addr=[::]:4455: Address already in use\nstep 1 loss 2.0\n",
    "a task whose heartbeats are configured": "INFO heartbeat timeout of task 3 is 100 s\nstep 1 loss 2.0\n",
    "an ssh of the script": "ssh: connect to host backup port 22: Connection refused\nstep 1 loss 2.0\n",
    "pods that mpirun starts on": "+ POD_NAME=sft-worker-1\n+ shift\n+ /opt/kube/kubectl exec "
    "sft-worker-1 -- /bin/sh -c orted\n[1,0]<stdout>:step 1 loss 2.0\n",
    "slots": "INFO 16 slots are available in the system for the 16 slots that were requested\n",
    "a slow start on a TPU": "xla_bridge.py:201: UserWarning: TPU backend initialization is taking more "
    "than 60.0 "
    "seconds. Did you run your code on all TPU hosts?\n  warnings.warn(\nstep 1 loss 2.0\nstep 2 loss 1.9\n",
    "a check that did not end the process": "W0301 01:02:03.4 77 cache.cc:12] Check failed: size > 0; "
    "using 1\n",
}
"""The same words in logs of jobs that work."""


def told(tmp_path: Path, text: str) -> tuple[Finding, ...]:
    log = tmp_path / "out.log"
    log.write_text(text + "\n")
    return diagnose_paths([log], load_catalogue()).findings


@pytest.mark.parametrize("text", FAILED, ids=range(len(FAILED)))
def test_a_known_fault_is_heard_in_the_words_of_every_version(text: str, tmp_path: Path) -> None:
    rule, who, says, fix, never = FAILED[text]
    findings = told(tmp_path, text)
    assert len(findings) == 1, [f.summary for f in findings]
    first = findings[0]
    assert (first.rule, first.severity) == (rule, Severity.ERROR)
    assert [w.name for w in first.who] == ([who] if who else [])
    assert says in first.summary and fix in first.fix
    shown = " ".join((first.summary, first.fix, *(e.observed for e in first.evidence[1:])))
    assert never not in shown


@pytest.mark.parametrize("name", HEALTHY)
def test_the_same_words_in_a_healthy_log_are_no_error(name: str, tmp_path: Path) -> None:
    assert [f.summary for f in told(tmp_path, HEALTHY[name])] == []


def test_a_command_that_the_user_s_code_ran_is_not_a_launcher_s_child(tmp_path: Path) -> None:
    own = (
        'Traceback (most recent call last):\n  File "/job/prep.py", line 9, in main\n    run(cmd, '
        "check=True)\n"
        '  File "/usr/lib/python3.11/subprocess.py", line 571, in run\n    raise CalledProcessError(\n'
        "subprocess.CalledProcessError: Command '['ffmpeg']' died with <Signals.SIGSEGV: 11>.\n"
    )
    assert [f.rule for f in told(tmp_path, own)] == ["EXIT002"]


def test_the_traceback_of_a_child_says_more_than_its_launcher(tmp_path: Path) -> None:
    child = 'Traceback (most recent call last):\n  File "/job/dpo.py", line 3, in f\nKeyError: 1\n'
    end = "subprocess.CalledProcessError: Command '['python', 'dpo.py']' returned non-zero exit status 1."
    (finding,) = told(tmp_path, child + ACCELERATE + end)
    assert finding.summary.endswith("raised KeyError at dpo.py:3 in f")


def test_the_reason_of_an_abort_says_more_than_the_launcher_s_signal(tmp_path: Path) -> None:
    reason = (
        "F0301 01:02:03.4 77 pool.cc:51] Check failed: res == 0 (11 vs. 0) pthread_create failed\n"
    )
    end = "subprocess.CalledProcessError: Command '['python', 'dpo.py']' died with <Signals.SIGABRT: 6>."
    assert [f.rule for f in told(tmp_path, reason + ACCELERATE + end)] == ["LOG011"]
    assert [f.rule for f in told(tmp_path, ACCELERATE + end)] == ["EXIT001"]


def test_memory_that_ran_out_in_a_process_without_a_cluster_is_its_own(tmp_path: Path) -> None:
    text = SESSION + "tensorflow.python.framework.errors_impl.ResourceExhaustedError: "
    (finding,) = told(tmp_path, text + OOM.format("localhost", 0, "GPU") + "allocator GPU_0_bfc")
    assert finding.summary.endswith("ran out of GPU memory") and "worker 0" not in finding.summary
