"""A rank failed because a worker process of its DataLoader had died.

## Why it matters
PyTorch reports this in the rank that was waiting for the batch: as a killed worker, or only as `Connection
reset by peer`, which looks like a network failure. The other ranks then lose their peer, and their errors
hide the cause.

## What to do
- A worker that receives SIGKILL has usually hit the memory limit: use fewer workers (`num_workers`), smaller
  batches, no copies in the dataset.
- `Bus error` means that /dev/shm is full: make it larger (`--shm-size`, an emptyDir with `medium: Memory`).
- To see an error of the dataset itself with its line, run once with `num_workers=0`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.dataloader_worker import describe_loader_worker_end
from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import must_delay_report, order_failures
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member
from allaboard.facts.samples import PEER_LOST, USER, ended_member, sample_job, waiting_member

_FIX = (
    "fewer workers (num_workers), a larger memory limit or /dev/shm (df /dev/shm); num_workers=0 for one "
    "run shows an error of the dataset itself"
)
_SHARED_MEMORY_FIX = (
    "df -h /dev/shm   # it was full; in a container give it more: docker run --shm-size=8g, or --ipc=host; "
    "in Kubernetes an emptyDir of medium Memory at /dev/shm; or fewer workers (num_workers)"
)


def check(view: JobView) -> Iterator[Claim]:
    for member in order_failures(view).own_failures:
        worker_end = describe_loader_worker_end(member)
        if worker_end and not must_delay_report(view, member):
            yield soften_evaluator_claim(view, member, _claim(member, worker_end))


def _claim(member: Member, worker_end: str) -> Claim:
    raised = member.raised
    assert raised is not None
    where = f" at {raised.where}" if raised.where is not None else ""
    evidence = [Evidence(f"{raised.type}: {raised.message[:300]}", "excepthook")]
    if member.step:
        evidence.append(Evidence(f"after step {member.step}", "black box"))
    return Claim(
        summary=f"{member.who.name} lost a DataLoader worker{where}: {worker_end}",
        who=(member.who,),
        evidence=tuple(evidence),
        fix=_SHARED_MEMORY_FIX if "Bus error" in worker_end else _FIX,
        since=raised.raised_at,
    )


_LOADER = "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
_PIPE = (
    Frame("/u/lib/python3.11/multiprocessing/connection.py", 395, "_recv"),
    Frame("/u/lib/python3.11/multiprocessing/queues.py", 122, "get"),
    Frame(_LOADER, 1291, "_try_get_data"),
    USER,
)
_RESET = ("ConnectionResetError", "[Errno 104] Connection reset by peer")
_KILLED = ("RuntimeError", "DataLoader worker (pid 4711) is killed by signal: Killed. ")


RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "a worker process of the DataLoader was killed": (
            sample_job(
                ended_member(0, raised=PEER_LOST),
                ended_member(1, raised=_KILLED),
                waiting_member(2),
            ),
            "worker 1 lost a DataLoader worker at train.py:41 in train: worker process 4711 is killed by "
            "signal: Killed",
        ),
        "only the closed pipe to a worker process of the DataLoader is visible": (
            sample_job(
                ended_member(0, raised=PEER_LOST),
                ended_member(1, raised=_RESET, frames=_PIPE),
                waiting_member(2),
            ),
            "worker 1 lost a DataLoader worker at train.py:41 in train: its worker process no longer "
            "responds (ConnectionResetError)",
        ),
    },
    silent_on={
        "a rank lost the connection to another rank": sample_job(
            ended_member(0, raised=PEER_LOST), ended_member(1, raised=_RESET)
        ),
        "the dataset reads from the network, and its connection was reset": sample_job(
            ended_member(1, raised=_RESET, frames=(USER, Frame(_LOADER, 700, "__next__"), USER))
        ),
    },
    drill=("loader-worker-killed",),
    relations=Relations(begins_failure=True, replaces_message=True, explains=("RES004",)),
)
