"""Known log messages of frameworks and of NCCL: each rule is what one kind of them means.

Which message means which rule, and the texts of the findings, are in the tables of diagnosis/wordings and
diagnosis/readers.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import known_message_check
from allaboard.contracts import Relations, Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import sample_heard

_RECORDED = "it is read after the fact: its recordings of real runs are in tests/readers/samples"
_NCCL_DOCUMENTS = "it needs GPUs; recordings of real runs on one of them are in bench/field"
_ANOTHER_MESSAGE = sample_heard("NET005", "a port is taken", "Address already in use")

_NO_RELATIONS = Relations()


def _rule(
    page: str,
    example: Heard,
    unstaged: str,
    relations: Relations = _NO_RELATIONS,
    stage: Stage | None = None,
) -> Rule[Heard]:
    """Return the rule that reports messages of the rule's code that this example has."""
    return Rule(
        page=page,
        stage=stage,
        reads=Heard,
        check=known_message_check(example.rule),
        fires_on={_title(example): (example, example.says)},
        silent_on={f"{_title(_ANOTHER_MESSAGE)}, which NET005 reports": _ANOTHER_MESSAGE},
        unstaged=unstaged,
        relations=relations,
    )


def _title(example: Heard) -> str:
    return f"a log with `{example.speakers[0].line}`"


RULES = {
    "log001_collective_timed_out": _rule(
        page="""Ranks waited in a collective until its timeout for a peer that never entered it.

## Why it matters
The message is written by the victims: each names an address, or nothing at all. The rank that did not write
it is the one they wait for: it is stopped, stuck, slow, in another collective, or gone.

## What to do
Read the log of the rank that is named here as silent, or look at it while it hangs: `allaboard diagnose
PID...`. `allaboard run` names that rank and its place while the job hangs.
""",
        example=sample_heard(
            "LOG001",
            "a rank waited 10000 ms in a collective for a peer that never entered it",
            "Timed out waiting 10000ms",
            fix="allaboard diagnose PID...",
        ),
        unstaged=_RECORDED,
        relations=Relations(ends_by_abort=True, reports_wait=True),
    ),
    "log002_heartbeat_lost": _rule(
        page="""A worker stopped sending heartbeats, or the leader stopped answering them.

## Why it matters
TensorFlow's and JAX's coordination service then says that the task "has crashed". But it may be stopped,
swapping, held by a debugger or by a disk that does not answer, or alive behind a broken link.

## What to do
See whether the process is there, and in which state: `ps -o pid,stat,etime -p PID` (T is stopped, D waits
for a disk). Then read its own log and the kernel's.
""",
        example=sample_heard(
            "LOG002",
            "worker 1 stopped sending heartbeats",
            "tasks are unhealthy (stopped sending heartbeats)",
            fix="ps -o stat= -p PID",
        ),
        unstaged=_RECORDED,
        relations=Relations(ends_by_abort=True, reports_silence=True),
    ),
    "log003_other_collective": _rule(
        page="""Some workers called other collectives than their peers.

## Why it matters
Collectives are matched by their order alone. If ranks run different code, have different numbers of
batches, or create their variables in another order, they meet in the wrong collective: at best an error, at
worst wrong sums.

## What to do
Compare what the ranks do: branches on the rank, loops over data of different length, models that differ.
""",
        example=sample_heard(
            "LOG003",
            "at collective 216 members called different operations (type 0 and type 1)",
            "Collective instance 216 expected type 0",
            fix="compare the workers",
        ),
        unstaged="it is read after the fact, in words taken from the frameworks' own source",
    ),
    "log004_one_gpu_twice": _rule(
        page="""Two ranks use one GPU.

## Why it matters
NCCL refuses to build a communicator then. Without `set_device`, every rank of a host takes GPU 0.

## What to do
Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before the first collective. Start no more
processes on a host than it has GPUs. Check CUDA_VISIBLE_DEVICES.
""",
        stage=Stage.STARTUP,
        example=sample_heard(
            "LOG004",
            "ranks 0 and 1 use one GPU (CUDA device 1000)",
            "Duplicate GPU detected : rank 0 and rank 1",
            fix="torch.cuda.set_device",
        ),
        unstaged=_NCCL_DOCUMENTS,
    ),
    "log005_no_interface": _rule(
        page="""NCCL found no network interface to use.

## Why it matters
NCCL_SOCKET_IFNAME names an interface that this host does not have, or no interface reaches the others.

## What to do
Compare NCCL_SOCKET_IFNAME with `ip -br address` on the host that reports it; names differ between hosts. A
leading `^` excludes interfaces, a leading `=` means the exact name.
""",
        stage=Stage.STARTUP,
        example=sample_heard(
            "LOG005",
            "NCCL found no network interface to use",
            "Bootstrap : no socket interface found",
            fix="ip -br address",
        ),
        unstaged=_NCCL_DOCUMENTS,
    ),
    "log006_cuda_failed": _rule(
        page="""A GPU failed, or CUDA failed below NCCL.

## Why it matters
NCCL, PyTorch or the kernel's log (`NVRM: Xid`) reports it, but it happened in the GPU, its driver, its
memory or a kernel that runs on it. The peers see only a lost connection.

## What to do
Run on that host: `nvidia-smi`, and `dmesg -T | grep -i xid` for the driver's own words.
""",
        example=sample_heard(
            "LOG006",
            "CUDA failed below NCCL: out of memory",
            "Cuda failure 'out of memory'",
            fix="nvidia-smi",
        ),
        unstaged=_NCCL_DOCUMENTS,
        relations=Relations(below_user_code=True, ends_by_abort=True),
    ),
    "log010_nccl_failed": _rule(
        page="""NCCL failed and says little about the reason.

## Why it matters
The traceback points to an innocent line: whatever used NCCL first. What NCCL ran into is after "Last
error:", and in the lines of `NCCL_DEBUG=INFO` before it. Those of other ranks say only that a peer went
away.

## What to do
Run once with `NCCL_DEBUG=INFO`, and read the log of the rank that failed first: sockets (interfaces,
firewalls), InfiniBand (`ibstat`), `/dev/shm`, drivers and CUDA versions that differ between the hosts.
""",
        example=sample_heard(
            "LOG010",
            "NCCL failed: Call to ibv_create_qp failed with error Cannot allocate memory",
            "Last error: Call to ibv_create_qp failed",
            fix="NCCL_DEBUG=INFO",
        ),
        unstaged="it is read after the fact, in words taken from PyTorch's and NCCL's own source",
        relations=Relations(ends_by_abort=True, below_user_code=True),
    ),
    "log011_check_failed": _rule(
        page="""Native code of a framework or a library ended its process: a check failed.

## Why it matters
No Python exception is raised, so there is no traceback: the process ends by SIGABRT, and its peers lose it.
This one line says what was wrong. If it is about `pthread_create`, the system gave no more threads: a limit
on processes is reached.

## What to do
For threads: compare `ulimit -u` and the container's `pids.max` with the number of threads, and raise the
limit or start fewer. Otherwise read the lines before it, which show what the library was given.
""",
        example=sample_heard(
            "LOG011",
            "rank 0 could not start another thread: a limit on processes and threads is reached",
            "Check failed: ret == 0 (11 vs. 0)Thread creation via pthread_create() failed.",
            fix="ulimit -u",
        ),
        unstaged="it is read after the fact, in words taken from the libraries' own source",
        relations=Relations(ends_by_abort=True),
    ),
    "log013_known_mistake": _rule(
        page="""A message in a log names a known mistake in how the job was set up.

## Why it matters
The program says what is wrong, in words of the framework: versions of NCCL that differ between ranks, an
argument that the launcher adds and the script does not take. The other ranks report only a lost peer.

## What to do
The finding has the remedy for the mistake that was read.
""",
        stage=Stage.STARTUP,
        example=sample_heard(
            "LOG013",
            "ranks 1 and 0 use different versions of NCCL (22705 and 22703)",
            "Mismatched NCCL version detected : rank 1 version 22705 rank 0 version 22703",
            fix="install the same build everywhere",
        ),
        unstaged="it is read after the fact, in words taken from the projects' own sources",
        relations=Relations(begins_failure=True),
    ),
    "log014_nccl_start_unfinished": _rule(
        page="""The log of a rank ends in the start of an NCCL communicator, which waits for all of its ranks.

## Why it matters
PyTorch sets NCCL up in the first collective of a group. A rank that never calls it leaves all others waiting
there, mostly without a message: the watchdog's timeout counts only what NCCL has begun.

## What to do
Look at the rank that is named: its log, or `py-spy dump --pid PID`. If all ranks are in the start, look at
the way between them: NCCL_SOCKET_IFNAME, firewalls, the interfaces of each host.
""",
        stage=Stage.STARTUP,
        example=sample_heard(
            "LOG014",
            "a rank waits in the start of an NCCL communicator of 2 ranks, and its log ends there",
            "ncclCommInitRankConfig comm 0x12c0c430 rank 0 nranks 2 cudaDev 0 - Init START",
            fix="py-spy dump --pid PID",
        ),
        unstaged="it needs GPUs; a recording of a real run is in bench/field",
        relations=Relations(reports_wait=True),
    ),
    "log015_kernel_wait": _rule(
        page="""A process of the training waits inside the kernel, or was stopped.

## Why it matters
A process in uninterruptible sleep (state D) waits for a file server, a disk or a driver, and does nothing
else meanwhile, not even end. The others wait for it in their next collective. The kernel reports such a task
after two minutes; `ps` and `/proc/PID/stack` show it at once, but also a wait that is over a moment later.

## What to do
Look at what the finding names: the server of that filesystem and the network to it, the disk, the driver. The
process goes on by itself once that answers. One that is stopped goes on with `kill -CONT PID`.
""",
        example=sample_heard(
            "LOG015",
            "pid 4242 (python) waited in the kernel for its NFS server (in nfs_lookup), for 120 s and more",
            "INFO: task python:4242 blocked for more than 120 seconds.",
            fix="dmesg -T | tail -40",
        ),
        unstaged="it is read after the fact, in words taken from the source of the kernel",
        relations=Relations(explains=("DUMP001", "LOG001")),
    ),
    "log012_unexplained_end": _rule(
        page="""A process failed or waits, and all that is known is its last words.

## Why it matters
No other rule explains this end: the exception only says that a peer or a session was lost, or native code
or a launcher ended the process with a message of its own, or the log ends in a record of an error or in a
wait that it repeats. The finding quotes it. It names a member only if the log does.

## What to do
Collect the logs of all members, and of the launcher, and diagnose them together: `allaboard diagnose DIR`.
The member that failed first says most. `allaboard run` collects them by itself.
""",
        example=sample_heard(
            "LOG012",
            "rank 0 aborted itself: Check failed: ret == 0 (11 vs. 0)",
            "F0101 10:00:00.000000 77 threads.cc:5] Check failed: ret == 0 (11 vs. 0)",
            fix="allaboard diagnose DIR",
        ),
        unstaged="it is read after the fact, in words taken from the programs' own source",
        relations=Relations(last_resort=True),
    ),
}
