"""What to do about an exception whose message is about how the job was started, and not about the line that
checked it: sizes that do not fit, ranks that differ, variables, what the host does not have. Pure.
"""

from __future__ import annotations

import re

from allaboard.late_pattern import compile_late

_SIZES = compile_late(
    r"(?:\b|_)world[ _-]?size\b"
    r"|\b(?:local|node|global)[ _-]?rank\b|\bdevice[ _-]?count\b|\bn(?:proc|nodes|procs)\b"
    r"|\bnum(?:ber)?[ _](?:of )?(?:processes|workers|gpus|devices|executors|nodes|hosts|ranks"
    r"|tasks|replicas)\b"
    r"|\b(?:tensor|pipeline|data|model|context|expert)[ _-](?:model[ _-])?parallel[ _-]?(?:ism|size)\b",
    re.IGNORECASE,
)
"""How many there are of what a launcher starts."""
_MUST_FIT = compile_late(
    r"divisible|multiple of|(?:not|must be|should be|to be) (?:equal|the same)|match|expect|exceed|less than"
    r"|greater than|at least|at most|larger|smaller|[!=<>]=|[<>]|>?= number|out of range|invalid"
    r"|insufficient"
    r"|not enough|more than|only \d+|does not (?:fit|agree)",
    re.IGNORECASE,
)
_MEMBERS = (
    r"(?:\branks? ?\d+\b|\b(?:all|every|each|other|between|across|different) (?:the )?ranks?\b"
    r"|\b(?:workers?|processes|hosts|nodes)\b)"
)
_DIFFER = (
    r"(?:disagree\w*|mismatch\w*|differ\w*|inconsisten\w*|not (?:be )?(?:the )?same"
    r"|must be (?:the )?same)"
)
_RANKS_DIFFER = compile_late(
    rf"{_DIFFER}\b[^\n]{{0,120}}?{_MEMBERS}|{_MEMBERS}[^\n]{{0,120}}?\b{_DIFFER}", re.IGNORECASE
)
_VARIABLE = compile_late(r"\b(?P<name>[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,5})\b")
_ASKS_FOR_MORE = compile_late(
    r"VERBOSE|(?:_|\b)LOGS?(?:_LEVEL)?$|DEBUG|STACKTRACE|LAUNCH_BLOCKING|CUDA_DSA"
)
"""Variables that only make a program say more: their absence is no cause."""
_STATUS_CODE = compile_late(
    r"^(?:FAILED_PRECONDITION|INVALID_ARGUMENT|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|NOT_FOUND|DATA_LOSS"
    r"|ALREADY_EXISTS|PERMISSION_DENIED|OUT_OF_RANGE|OP_REQUIRES|RET_CHECK|(?:CUDA|HIP|MPI|NCCL)_ERR\w*"
    r"|(?:CUDNN|CUBLAS|UCS)_(?:STATUS|ERR)\w*)$"
)
"""Names that status codes have, which look like variables."""
_OF_VARIABLE = compile_late(
    r"environment|\benv\b|\bset\b|not found|missing|defin|config|empty|export", re.IGNORECASE
)
_LIMITS = compile_late(
    r"paging file|cannot allocate|out of memory|no space left|too many open files|quota"
    r"|not enough (?:memory|space)",
    re.IGNORECASE,
)


def start_advice(message: str) -> str:
    """Return what to compare or set outside the program; "" if the message is about the program itself."""
    text = message[:1500]
    variables = [
        m["name"]
        for m in _VARIABLE.finditer(text)
        if not (_ASKS_FOR_MORE.search(m["name"]) or _STATUS_CODE.match(m["name"]))
    ]
    if variables and _OF_VARIABLE.search(text):
        names = " ".join(f"${name}" for name in dict.fromkeys(variables[:3]))
        return (
            f"echo {names}   # in the process itself, on each host: set it as the message says, by the "
            "launcher that starts all of them"
        )
    if _RANKS_DIFFER.search(text):
        return (
            "compare what every rank passes there: the same code, order, data and versions on all hosts "
            "(allaboard preflight compares them)"
        )
    if _SIZES.search(text) and _MUST_FIT.search(text):
        return (
            "echo $WORLD_SIZE $LOCAL_RANK; nvidia-smi -L   # compare the number of processes "
            "(--nproc-per-node, --nnodes, ntasks) and of GPUs with the sizes that the program's own "
            "options ask for: they must fit as the message says"
        )
    if _LIMITS.search(text):
        return (
            "free -g; df -h; ulimit -a   # on that host: raise what is used up (on Windows the paging "
            "file), or need less: fewer workers (num_workers), smaller batches"
        )
    return ""
