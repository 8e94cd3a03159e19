"""A rank ended because a worker process of its DataLoader had died.

## Why it matters
PyTorch reports it in the rank that was waiting for the batch: as a killed worker, or only as `Connection
reset by peer`, which reads like a network failure. The other ranks then lose their peer, and report that
more loudly.

## What to do
- A worker that gets SIGKILL has usually hit the memory limit: use fewer workers (`num_workers`), smaller
  batches, no copies in the dataset.
- `Bus error` means a full /dev/shm: make it larger (`--shm-size`, an emptyDir with `medium: Memory`).
- To see an error of the dataset itself with its line, run once with `num_workers=0`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.failures.dataloader_worker import describe_loader_worker_end
from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import must_delay_report, order_failures
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member, Stage
from allaboard.facts.samples import USER, ended, job, waiting


def check(view: JobView) -> Iterator[Claim]:
    for one in order_failures(view).own_failures:
        became = describe_loader_worker_end(one)
        if became and not must_delay_report(view, one):
            yield soften_evaluator_claim(view, one, _claim(one, became))


def _claim(one: Member, became: str) -> Claim:
    raised = one.raised
    assert raised is not None
    where = f" at {raised.where}" if raised.where is not None else ""
    evidence = [Evidence(f"{raised.type}: {raised.message[:300]}", "excepthook")]
    if one.step:
        evidence.append(Evidence(f"after step {one.step}", "black box"))
    return Claim(
        summary=f"{one.who.name} lost a worker of its DataLoader{where}: {became}",
        who=(one.who,),
        evidence=tuple(evidence),
        fix="fewer workers (num_workers), a larger memory limit or /dev/shm (df /dev/shm); "
        "num_workers=0 for one run shows an error of the dataset itself",
        since=raised.at,
    )


_LOADER = "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
_PIPE = (
    Frame("/u/lib/python3.11/multiprocessing/connection.py", 395, "_recv"),
    Frame("/u/lib/python3.11/multiprocessing/queues.py", 122, "get"),
    Frame(_LOADER, 1291, "_try_get_data"),
    USER,
)
_RESET = ("ConnectionResetError", "[Errno 104] Connection reset by peer")
_KILLED = (
    "RuntimeError",
    "DataLoader worker (pid 4711) is killed by signal: Killed. ",
)
_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")


RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "killed": (
            job(ended(0, raised=_LOST), ended(1, raised=_KILLED), waiting(2)),
            "worker 1 lost a worker of its DataLoader at train.py:41 in train: worker process 4711 is "
            "killed by signal: Killed",
        ),
        "only its pipe was seen to close": (
            job(ended(0, raised=_LOST), ended(1, raised=_RESET, frames=_PIPE), waiting(2)),
            "worker 1 lost a worker of its DataLoader at train.py:41 in train: its worker process does not "
            "answer any more (ConnectionResetError)",
        ),
    },
    silent_on={
        "a peer": job(ended(0, raised=_LOST), ended(1, raised=_RESET)),
        "a dataset that reads from the network": job(
            ended(1, raised=_RESET, frames=(USER, Frame(_LOADER, 700, "__next__"), USER))
        ),
    },
    since="0.1",
    drill=("loader-worker-killed",),
    relations=Relations(begins_failure=True, replaces_message=True),
)
