"""Messages between two ranks: `send` and `recv`, and those under way (`isend`, `irecv`, batches of them).

Hooked and tried on torch 2.13 with gloo. Who waits for a message that is under way is told whom it is for: a
``Work`` does not say it. NCCL makes one ``Work`` of a whole batch, which is for several.
"""

from __future__ import annotations

import functools
import sys
import weakref

from ... import member
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_MESSAGES = 1024
"""Messages under way that are kept in mind."""


def describe_send(
    tensor: Any, dst: Any = None, group: Any = None, tag: int = 0, group_dst: Any = None
) -> str:
    return _describe_peer(" to rank ", dst, group, tag, group_dst)


def describe_receive(
    tensor: Any, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None
) -> str:
    return _describe_peer(" from rank ", src, group, tag, group_src)


def _describe_peer(direction: str, peer: Any, group: Any, tag: int, group_peer: Any) -> str:
    if peer is None and group_peer is not None:
        peer = group_peer
        if group is not None:
            distributed = sys.modules["torch.distributed.distributed_c10d"]
            peer = distributed.get_global_rank(group, group_peer)
    return ("" if peer is None else direction + str(int(peer))) + (", tag %d" % tag if tag else "")


BLOCKING = {"recv": describe_receive, "send": describe_send}
"""Seen while they last, but no call that all ranks share; with what is said of the message."""
UNDER_WAY = {"irecv": describe_receive, "isend": describe_send}
_messages: dict[int, tuple[weakref.ref[Any], str]] = {}
"""By the id of its ``Work``: that, weakly, for it holds the tensor, and what the message is."""


def begun(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call``, which begins a message, and remember the message; same signature, same result."""
    describe = UNDER_WAY[name]

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        work = call(*args, **kwargs)
        box = member.here.box
        if work is not None and box is not None:
            try:
                slot = box.slot()
                if slot is not None and not slot.depth:  # else a blocking one waits for it itself
                    _remember(work, name + describe(*args, **kwargs))
            except Exception as error:
                # Else a message that cannot be described is waited for without a name.
                reraise_from_handler(error)
        return work

    return inside


def _remember(work: Any, label: str) -> None:
    """Remember what a message is; those whose ``Work`` is gone make room first."""
    if len(_messages) >= MAX_MESSAGES:
        for key in [k for k, (reference, _) in _messages.items() if reference() is None]:
            del _messages[key]
        if len(_messages) >= MAX_MESSAGES:
            _messages.clear()
    _messages[id(work)] = weakref.ref(work), label


def awaited(work: Any, *args: Any, **kwargs: Any) -> str:
    """Return what a wait for this work is for, if it is for a message; else ""."""
    reference, label = _messages.get(id(work), (None, ""))
    return " for " + label if reference is not None and reference() is work else ""
