"""A GPU failed, or CUDA failed below NCCL.

## Why it matters
NCCL, PyTorch or the kernel's log (`NVRM: Xid`) reports it, but it happened in the GPU, its driver, its
memory or a kernel that runs on it. The peers see only a lost connection.

## What to do
Run on that host: `nvidia-smi`, and `dmesg -T | grep -i xid` for the driver's own words.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Relations, Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "CUDA failed below NCCL: out of memory"
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Heard,
    check=told("LOG006"),
    fires_on={
        "the message": (
            heard("LOG006", _SAYS, "Cuda failure 'out of memory'", fix="nvidia-smi"),
            _SAYS,
        ),
    },
    silent_on={"another message": heard("NET005", _SAYS, "Cuda failure 'out of memory'")},
    since="0.1",
    unstaged="there is no GPU here; its messages are from NCCL's documents",
    relations=Relations(below_user_code=True),
)
