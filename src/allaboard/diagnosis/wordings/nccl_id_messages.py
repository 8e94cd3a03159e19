"""Known messages of ranks that waited for the id of an NCCL communicator, which its first rank writes.

PyTorch sets a communicator up in the first collective of a group, or in the first send or receive of a pair
of ranks. The key tells which. The numbers in brackets are ranks within the group; the second is always 0.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage

WAITS_IN_GROUP = "a rank waited in the first collective of group "
"""Begins the sentence on a rank that waited in a group of its own making."""
_RECORDED = "recorded with PyTorch 2.11, two ranks on one H200"
_HEAD = r"\[(?P<waiter>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId from "
_KEY = (
    r"\[\d+\] via c10d key-value store by key '{}', but store->get\('[^'\n]{{0,80}}'\) got error: "
)
_WHY = r"(?P<why>[^\n]{0,40}[Tt]ime(?:d )?[Oo]ut)"
_PAIR = r"(?P<rank>\d+):\d+"
_SUBGROUP = (
    r"[^\n]{0,40}, keys: /default_pg/\d+//(?!(?:cuda|cpu|xpu)//)(?P<group>[^\s/]{1,80})//"
    r"(?:cuda|cpu|xpu)//"
)
_SAMPLE = (
    "[rank1]: torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving "
    "ncclUniqueId from [0] via c10d key-value store by key '{key}', but store->get('{key}') got "
    "error: {error}"
)

ID_MESSAGES = (
    KnownMessage(
        key="store->get(",
        pattern=_HEAD + _KEY.format(_PAIR) + _WHY,
        rule="EXIT005",
        says="rank {waiter} waited in a send or receive with rank {rank}, which did not call its counterpart "
        "until the timeout",
        fix="compare the send, recv and isend calls of both ranks: each needs its counterpart, in the same "
        "order; the traceback of rank {waiter} has its line; rank {rank}: its log, or, while it hangs, "
        "py-spy dump --pid PID",
        proves_not="which of them is wrong: a call too many here, or one that is missing there",
        explains=("DUMP002", "LOG001", "LOG007", "LOG010"),
        sample=_SAMPLE.format(
            key="0:1", error="wait timeout after 12000ms, keys: /default_pg/0//cuda//0:1"
        ),
        source=_RECORDED,
    ),
    KnownMessage(
        key="store->get(",
        pattern=_HEAD + _KEY.format(r"\d+") + _WHY + _SUBGROUP,
        rule="EXIT005",
        says=WAITS_IN_GROUP + "{group} for the first rank of that group, which "
        "was in a collective of another group, in its own code, or gone, until the timeout ({why})",
        fix="see that all ranks use their groups in the same order: compare the line of this rank's "
        "traceback "
        "with that of the group's first rank: its log, or, while it hangs, py-spy dump --pid PID",
        proves_not="that a rank failed: two ranks that use two groups in turn wait for each other",
        sample=_SAMPLE.format(
            key="0", error="wait timeout after 12000ms, keys: /default_pg/0//2//cuda//0"
        ),
        source=_RECORDED,
    ),
    KnownMessage(
        key="store->get(",
        pattern=_HEAD + r"\[(?P<rank>\d+)\] via c10d key-value store by key '[^':\n]{0,80}', but "
        r"store->get\('[^'\n]{0,80}'\) got error: " + _WHY + f"(?!{_SUBGROUP})",
        rule="EXIT005",
        says="rank {waiter} waited for rank {rank}, which was still in its own code or gone, until the "
        "store's timeout ({why})",
        fix="read the log of rank {rank}; while it waits, on its host: py-spy dump --pid PID; raise "
        "init_process_group(timeout=) (Trainer: ddp_timeout), or prepare the data before the job",
        proves_not="that rank {rank} failed: preparing data for longer than the timeout looks the same",
        sample=_SAMPLE.format(key="0", error="Socket Timeout"),
        source="from the source of PyTorch's ProcessGroupNCCL",
    ),
)
