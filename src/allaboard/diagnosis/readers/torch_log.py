"""PyTorch's own words: c10d's stores, the watchdog of NCCL's process group."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.torch_messages import MESSAGES, WAITING_IN_BARRIER
from allaboard.facts import Certainty, Exhibit, Heard, Severity, Testimony

PORT_TAKEN = "NET005"
"""The rule of messages about a port on which a member could not listen."""
TWO_RANK_ZEROS = "JOIN005"
"""The rule of two processes of one job that take themselves for rank 0."""
TWO_RANK_ZEROS_EXPLAIN = ("JOIN001", "JOIN004")
"""The rules of what follows from it: another rank is missing, and those that wait give up."""
_DOCKER_PLACE = re.compile(r"nobody answered at (172\.17\.\d+\.\d+):\d")
"""The addresses that Docker gives on its default bridge of each host."""
_LOOPBACK_PLACE = re.compile(r"nobody answered at (127\.[\d.]+|::1|localhost[\w.]*):\d")
_ENDED_FROM_OUTSIDE = re.compile(
    r"slurmstepd: |srun: |CANCELLED|TIME LIMIT|Terminated|Killed|KeyboardInterrupt|death signal"
)
"""Lines of what ends a job that waits."""
SURVIVED = ("cannot be retrieved",)
"""Keys of messages of one try among several: they count only if no training goes on after them."""
MIN_STEPS_AFTER = 2
"""Lines about loss or steps that show that a training goes on."""
_COUNT = re.compile(r"(\d+) of (\d+) members came to the end of init")


def read_log(exhibit: Exhibit) -> Testimony | None:
    counted = [
        m
        for m in (*MESSAGES, WAITING_IN_BARRIER)
        if m.key not in SURVIVED
        or not (exhibit.trained_after or trains_on_after(exhibit.text, m.key, MIN_STEPS_AFTER))
    ]
    heard = tuple(map(_with_surplus, find_known_messages(exhibit, counted)))
    heard = (*heard, *_waiting_in_barrier(exhibit))
    heard = tuple(_with_loopback(h) for h in heard if h.certainty is not Certainty.UNKNOWN)
    return Testimony(heard=heard) if heard else None


def _waiting_in_barrier(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the barrier of init in which ranks wait where the log ends, or where something ended the job."""
    begin = exhibit.text.rfind(WAITING_IN_BARRIER.key)
    match = WAITING_IN_BARRIER.compiled.search(exhibit.text, begin) if begin >= 0 else None
    if match is None or int(match["here"]) >= int(match["size"]):
        return ()
    later = [x for x in exhibit.text[match.end() :].split("\n")[1:] if x.strip()]
    if not all(map(_ENDED_FROM_OUTSIDE.search, later)):
        return ()
    waiting = find_known_messages(exhibit, (WAITING_IN_BARRIER,))[-1]
    return (
        msgspec.structs.replace(
            waiting,
            says=f"{match['here']} of {match['size']} members have come to the end of init "
            f"{'when the job is ended' if later else 'when the log ends'}; they wait for the others",
            fix=f"see which of the {match['size']} ranks has no log, or never reached init_process_group; "
            f"start as many: srun --ntasks={match['size']}, or torchrun on every host",
            severity=Severity.ERROR if later else Severity.WARNING,
            certainty=Certainty.LIKELY,
            proves_not="which one: the barrier counts, it knows no ranks",
        ),
    )


def _with_loopback(heard: Heard) -> Heard:
    """Return a meeting place that was not reached with what its address means, if only one host knows it."""
    docker = _DOCKER_PLACE.match(heard.says)
    if docker is not None:
        return msgspec.structs.replace(
            heard,
            says=f"{heard.says}; {docker[1]} looks like an address of Docker's bridge, which other hosts "
            "cannot reach",
            fix="start the containers with --network=host, or give the host's own address (MASTER_ADDR; Ray: "
            f"--node-ip-address, VLLM_HOST_IP); on one host: {heard.fix}",
        )
    match = _LOOPBACK_PLACE.match(heard.says)
    if match is None:
        return heard
    return msgspec.structs.replace(
        heard,
        says=f"{heard.says}; {match[1]} is on every host that host itself",
        fix="MASTER_ADDR (or --rdzv-endpoint, init_method) must be the name of rank 0's host, if not all "
        f"ranks are on one; on one host: {heard.fix}",
    )


def _with_surplus(heard: Heard) -> Heard:
    """Return the count of a barrier as what it means if more came than there are members."""
    count = _COUNT.match(heard.says)
    if count is None or int(count[1]) <= int(count[2]):
        return heard
    return msgspec.structs.replace(
        heard,
        rule="JOIN005",
        says=f"{count[1]} processes joined a world of {count[2]}: each task started more than one, or two "
        "jobs met at one address",
        fix="pgrep -af python   # on each host: as many as ranks? No torchrun or mp.spawn inside a task that "
        "srun or mpirun starts for each rank; another job needs a MASTER_PORT of its own",
        certainty=Certainty.LIKELY,
        awaits=False,
        proves_not="which of the two it was; with file:// or a store that outlives the job, an earlier run "
        "is counted too",
    )


READER = LogReader(read=read_log)
