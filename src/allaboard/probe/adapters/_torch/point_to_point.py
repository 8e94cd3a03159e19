"""Messages between two ranks: `send` and `recv`, and those under way (`isend`, `irecv`, batches of them).

Hooked and tried on torch 2.13 with gloo. Who waits for a message that is under way is told whom it is for: a
``Work`` does not say it. NCCL makes one ``Work`` of a whole batch, which is for several.
"""

from __future__ import annotations

import functools
import sys
import weakref

from ... import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST = 1024
"""Messages under way that are kept in mind."""


def sends(
    tensor: Any, dst: Any = None, group: Any = None, tag: int = 0, group_dst: Any = None
) -> str:
    return _said(" to rank ", dst, group, tag, group_dst)


def receives(
    tensor: Any, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None
) -> str:
    return _said(" from rank ", src, group, tag, group_src)


def _said(way: str, peer: Any, group: Any, tag: int, within: Any) -> str:
    if peer is None and within is not None:
        peer = within
        if group is not None:
            distributed = sys.modules["torch.distributed.distributed_c10d"]
            peer = distributed.get_global_rank(group, within)
    return ("" if peer is None else way + str(int(peer))) + (", tag %d" % tag if tag else "")


BLOCKING = {"recv": receives, "send": sends}
"""Seen while they last, but no call that all ranks share; with what is said of the message."""
UNDER_WAY = {"irecv": receives, "isend": sends}
_begun: dict[int, tuple[weakref.ref[Any], str]] = {}
"""By the id of its ``Work``: that, weakly, for it holds the tensor, and what the message is."""


def begun(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, which begins a message; same signature, same result."""
    more = UNDER_WAY[name]

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        work = call(*args, **kwargs)
        box = member.here.box
        if work is not None and box is not None:
            try:
                slot = box.slot()
                if slot is not None and not slot.depth:  # else a blocking one waits for it itself
                    _keep(work, name + more(*args, **kwargs))
            except Exception:
                pass  # what is not known is not told
        return work

    return inside


def _keep(work: Any, label: str) -> None:
    if len(_begun) >= MOST:
        for key in [k for k, (of, _) in _begun.items() if of() is None]:
            del _begun[key]
        if len(_begun) >= MOST:
            _begun.clear()
    _begun[id(work)] = weakref.ref(work), label


def awaited(work: Any, *args: Any, **kwargs: Any) -> str:
    """Return what a wait for this work is for, if it is for a message; else ""."""
    of, label = _begun.get(id(work), (None, ""))
    return " for " + label if of is not None and of() is work else ""
