"""An element of a list that is not there, by the source line that asked for it: one for each rank, or the
first of an empty list. Pure.

The message is the same for all ("list index out of range"); the line tells what was counted.
"""

from __future__ import annotations

import re

from allaboard.analysis.failures.mistakes.known_mistake import Remedy
from allaboard.facts import Raised

_OUT_OF_RANGE = re.compile(r"^(?:list|tuple|string|pop) index out of range|^pop from empty list")
_BY_RANK = re.compile(
    r"(?P<list>[A-Za-z_][\w.]{1,60})\[(?:int\()?(?:self|args|cfg|config|ctx|trainer|env|state)?\.?"
    r"(?P<index>(?:\w{0,20}_)?(?:local_?rank|rank|device_?(?:id|index)|gpu_?(?:id|index)?"
    r"|process_index|local_process_index|target_device))\)?\]"
)
_FIRST = re.compile(r"(?P<list>[A-Za-z_][\w.]{1,60})\[(?:0|-1)\]")
_RANKS_FIX = (
    "echo $LOCAL_RANK $SLURM_LOCALID $CUDA_VISIBLE_DEVICES; nvidia-smi -L   # in each process: start no more "
    "on a node (--nproc-per-node, --ntasks-per-node, devices=) than {list} has elements; and index it by the "
    "rank on the node (LOCAL_RANK), not by that of the job"
)


def refused_index(error: Raised) -> Remedy | None:
    """Return why an index was out of range and what to do; None if the line does not tell, or is the user's
    and counts nothing of the job."""
    if error.type != "IndexError" or not _OUT_OF_RANGE.match(error.message) or not error.frames:
        return None
    innermost = error.frames[0]
    if match := _BY_RANK.search(innermost.text):
        return Remedy(
            f"{match['list']} has no element for the {match['index']} of this process: more processes run "
            "on the node than it has",
            _RANKS_FIX.format(list=match["list"]),
        )
    if innermost.is_user or (match := _FIRST.search(innermost.text)) is None:
        return None
    caller = error.where
    passed = f"what {caller} passes" if caller is not None else "what the program passes to it"
    return Remedy(
        f"{match['list']} is empty there: the library found nothing to work on",
        f"look at {passed}: on the host of this rank, does the list of files, shards or data that it names "
        "have any (ls, a pattern that matches nothing, a part for each rank that is empty)?",
    )
