"""Known messages of PyTorch's report on ranks that are out of step (TORCH_NCCL_DESYNC_DEBUG=1).

A rank whose collective timed out reads from the store how far each rank of the group had come. The wording is
that of ``retrieveDesyncReport`` (TraceUtils.h), which backends of other devices have copied. The numbers are
ranks within the group, and collectives count from 1.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage

_SOURCE = "its wording from the source of PyTorch 1.13 to 2.13 (TraceUtils.h)"
_RANKS = r"\[(?P<rank>\d{1,7}(?:, ?\d{1,7})*)\]"
_GROUP = (
    "that these are the job's ranks: they are numbers within the group, as in its other messages"
)
_LOOK = "look at rank {rank}: its log, or py-spy dump --pid PID while it hangs"


def _message(
    key: str, pattern: str, says: str, fix: str, proves_not: str, line: str
) -> KnownMessage:
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="LOG001",
        says=says,
        fix=fix,
        proves_not=proves_not,
        explains=("LOG001", "LOG007"),
        sample="[E ProcessGroupNCCL.cpp:537] \n\t - [1] Timeout at collective: ALLREDUCE, #40"
        + line,
        source=_SOURCE,
    )


DESYNC_MESSAGES = (
    _message(
        "are the lagging ranks that caused this timeout",
        rf"ranks {_RANKS} are the lagging ranks that caused this timeout",
        "rank {rank} joined no collective, in which the others waited for it",
        _LOOK,
        _GROUP,
        "\t - To our best knowledge, ranks [3] are the lagging ranks that caused this timeout. They never "
        "joined any collectives",
    ),
    _message(
        ", but didn't join collective #",
        _RANKS + r" finished collective #\d{1,9}, but didn't join collective #(?P<number>\d{1,9})",
        "rank {rank} did not call collective {number}, in which the others waited for it",
        _LOOK,
        _GROUP,
        "\t     [0, 2] finished collective #39, but didn't join collective #40 (count from 1)",
    ),
    _message(
        "joined but didn't finish collective #",
        _RANKS + r" joined but didn't finish collective #(?P<number>\d{1,9})",
        "rank {rank} did not get through collective {number}: no rank of the group had come less far",
        "where these are all ranks of the group, none is missing: look for a GPU or a link that does not "
        "move "
        "(nvidia-smi; dmesg -T | grep -i xid; allaboard preflight); else compare their code with that of the "
        "ranks that are further: they call another collective there",
        _GROUP,
        "\t   - [1] joined but didn't finish collective #40 (count from 1)",
    ),
)
