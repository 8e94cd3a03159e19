"""What graphs of `torch.compile` call: told as not seen where collectives are among it.

Hooked and tried on torch 2.13, where a compiler is given the graph. A compiled graph calls collectives as
operations, past the Python functions that are counted. Nothing of the user's code is traced in here, and what
it compiles stays as it is. Not seen: collectives that a later stage puts into a graph (those of DTensor).
"""

from __future__ import annotations

import functools

from .. import member
from . import _torch_flight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

KEY = "hook torch.compile"
OURS = "_c10d_functional."
QUIET = ("wait_tensor",)


def hook(module: Any) -> None:
    """Looks at each graph before it is compiled; a version without that place is left alone."""
    cls: Any = getattr(module, "OutputGraph", None)
    call = getattr(cls, "call_user_compiler", None)
    if not callable(call):
        return

    @functools.wraps(call)
    def inside(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            _look(gm.graph.nodes)
        except Exception:
            pass  # another version's graph; the user's compilation goes on
        return call(self, gm, *args, **kwargs)

    cls.call_user_compiler = inside


def _look(nodes: Iterable[Any]) -> None:
    names = (str(node.target) for node in nodes if node.op == "call_function")
    found = sorted({_short(name) for name in names if OURS in name} - set(QUIET))
    if found and KEY not in member.here.notes:
        told = ", ".join(found[:4])
        seen = "seen only where they stand still" if _torch_flight.listen() else "not counted"
        member.here.note(KEY, f"its graphs call collectives ({told}), which are {seen}")


def _short(name: str) -> str:
    """``_c10d_functional.all_reduce.default`` as people know it."""
    return name.partition(OURS)[2].partition(".")[0]
