"""Two ranks use one GPU.

## Why it matters
NCCL refuses to build a communicator then. Without `set_device`, every rank of a host takes GPU 0.

## What to do
Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before the first collective. Start no more
processes on a host than it has GPUs. Check CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "ranks 0 and 1 use one GPU (CUDA device 1000)"
RULE = Rule(
    stage=Stage.STARTUP,
    reads=Heard,
    check=told("LOG004"),
    fires_on={
        "the message": (
            heard(
                "LOG004",
                _SAYS,
                "Duplicate GPU detected : rank 0 and rank 1",
                fix="torch.cuda.set_device",
            ),
            _SAYS,
        ),
    },
    silent_on={
        "another message": heard("NET005", _SAYS, "Duplicate GPU detected : rank 0 and rank 1")
    },
    since="0.1",
    unstaged="there is no GPU here; its messages are from NCCL's documents",
)
