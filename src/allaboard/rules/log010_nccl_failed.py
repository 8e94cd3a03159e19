"""NCCL failed and says little about the reason.

## Why it matters
The traceback points to an innocent line: whatever used NCCL first. What NCCL ran into stands after "Last
error:", and in the lines of `NCCL_DEBUG=INFO` before it. Those of other ranks say only that a peer went
away.

## What to do
Run once with `NCCL_DEBUG=INFO`, and read the log of the rank that failed first: sockets (interfaces,
firewalls), InfiniBand (`ibstat`), `/dev/shm`, drivers and CUDA versions that differ between the hosts.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Relations, Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "NCCL failed: Call to ibv_modify_qp failed with error Connection timed out"
RULE = Rule(
    stage=Stage.RUNTIME,
    reads=Heard,
    check=told("LOG010"),
    fires_on={
        "the message": (
            heard(
                "LOG010", _SAYS, "Last error: Call to ibv_modify_qp failed", fix="NCCL_DEBUG=INFO"
            ),
            _SAYS,
        ),
    },
    silent_on={"another message": heard("LOG006", _SAYS, "Cuda failure 'out of memory'")},
    since="0.1",
    unstaged="it is read after the fact, in words taken from PyTorch's and NCCL's own source: they need GPUs",
    relations=Relations(ends_by_abort=True, below_user_code=True),
)
