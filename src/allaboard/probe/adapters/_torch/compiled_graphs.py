"""What graphs of `torch.compile` call: told as not seen where collectives are among it.

Hooked and tried on torch 2.13, where a compiler is given the graph. A compiled graph calls collectives as
operations, past the Python functions that are counted. Nothing of the user's code is traced in here, and what
it compiles stays as it is. Not seen: collectives that a later stage puts into a graph (those of DTensor).
"""

from __future__ import annotations

import functools
import os

from ... import member
from ...signal_errors import reraise_from_handler
from . import flight_recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

KEY = "hook torch.compile"
TRACED = ("functional_collectives.py", "phases.py")
"""Files whose functions stand in the place of some that a compiler follows, and do nothing while it looks."""
OPERATION_PREFIX = "_c10d_functional."
UNLISTED_OPERATIONS = ("wait_tensor",)


def left_alone(module: Any) -> None:
    """Hook `torch._dynamo.trace_rules`: the probe's own functions are called as they are, like PyTorch's own
    Python; they would be compiled like the user's, with all that this breaks and warns of."""
    files = getattr(module, "FORCE_SKIP_FILES", None)
    if not isinstance(files, set):
        return  # another version's rules; all that is compiled works, with more of it
    here = os.path.dirname(left_alone.__code__.co_filename)
    adapters = os.path.dirname(here)
    for folder in (here, adapters, os.path.dirname(adapters)):
        names = [n for n in os.listdir(folder) if n.endswith(".py") and n not in TRACED]
        files.update(os.path.join(folder, n).replace(os.sep, "/") for n in names)


def hook(module: Any) -> None:
    """Look at each graph before it is compiled; a version without that place is left alone."""
    cls: Any = getattr(module, "OutputGraph", None)
    call = getattr(cls, "call_user_compiler", None)
    if not callable(call):
        return

    @functools.wraps(call)
    def inside(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            _note_collectives(gm.graph.nodes)
        except Exception as error:
            reraise_from_handler(
                error
            )  # else another version's graph; the user's compilation goes on
        return call(self, gm, *args, **kwargs)

    cls.call_user_compiler = inside


def _note_collectives(nodes: Iterable[Any]) -> None:
    names = (str(node.target) for node in nodes if node.op == "call_function")
    operations = sorted(
        {_operation_name(name) for name in names if OPERATION_PREFIX in name}
        - set(UNLISTED_OPERATIONS)
    )
    if operations and KEY not in member.here.notes:
        shown = ", ".join(operations[:4])
        how_seen = "seen only where they stand still" if flight_recorder.listen() else "not counted"
        member.here.note(KEY, f"its graphs call collectives ({shown}), which are {how_seen}")


def _operation_name(name: str) -> str:
    """Return the name by which people know ``_c10d_functional.all_reduce.default``."""
    return name.partition(OPERATION_PREFIX)[2].partition(".")[0]
