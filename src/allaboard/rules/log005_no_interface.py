"""NCCL found no network interface to use.

## Why it matters
NCCL_SOCKET_IFNAME names an interface that this host does not have, or no interface reaches the others.

## What to do
Compare NCCL_SOCKET_IFNAME with `ip -br address` on the host that reports it; names differ between hosts. A
leading `^` excludes interfaces, a leading `=` means the exact name.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import told
from allaboard.contracts import Rule
from allaboard.facts import Heard, Stage
from allaboard.facts.samples import heard

_SAYS = "NCCL found no network interface to use"
RULE = Rule(
    stage=Stage.STARTUP,
    reads=Heard,
    check=told("LOG005"),
    fires_on={
        "the message": (
            heard("LOG005", _SAYS, "Bootstrap : no socket interface found", fix="ip -br address"),
            _SAYS,
        ),
    },
    silent_on={"another message": heard("NET005", _SAYS, "Bootstrap : no socket interface found")},
    since="0.1",
    unstaged="there is no GPU here; its messages are from NCCL's documents",
)
