"""Horovod's stall inspector. Its samples are from Horovod's documents: its last release does not
build against the frameworks of today."""

from __future__ import annotations

from allaboard.contracts import Witness
from allaboard.evidence.messages import Message, hear
from allaboard.facts import Exhibit, Testimony

_DOCUMENT = "from Horovod's documents (Troubleshooting, Stalled Ranks), not recorded"

MESSAGES = (
    Message(
        key="Missing ranks:",
        pattern=r"Missing ranks:\s*\n(?:[^\n]{0,80}\])?\s*(?P<rank>\d+): \[(?P<tensor>[^,\]\n]{1,120})",
        rule="LOG001",
        says="rank {rank} did not submit {tensor}, which the others wait for",
        fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
        proves_not="that rank {rank} is at fault where ranks run different code: then each misses the "
        "other's tensors",
        sample="[1,0]<stderr>:[W stall_inspector.cc:105] One or more tensors were submitted to be "
        "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for "
        "more than 60 seconds. \nMissing ranks:\n1: [DistributedAdam_Allreduce/cond/HorovodAllreduce]",
        source=_DOCUMENT,
    ),
    Message(
        key="[missing ranks:",
        pattern=r"(?P<tensor>\S+) \[missing ranks: (?P<rank>[\d, ]+)\]",
        rule="LOG001",
        says="rank {rank} did not submit {tensor}, which the others wait for",
        fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
        proves_not="that it is at fault where ranks run different code: then each misses the other's "
        "tensors",
        sample="Stalled ops:\nHorovodBroadcast_global_step [missing ranks: 1, 3]",
        source=_DOCUMENT,
    ),
)


def hears(exhibit: Exhibit) -> Testimony | None:
    heard = hear(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


WITNESS = Witness(hears=hears)
