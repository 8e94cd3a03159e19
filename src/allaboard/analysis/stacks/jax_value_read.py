"""Values of a JAX program that are read through NumPy: a wait in C that the probe does not see.

NumPy takes an array of one device (`loss.addressable_data(0)`, `loss[0]` after `jax.pmap`) through Python's
buffer protocol, so JAX's own reading of values is never called, and no frame is left.
Tried on jax 0.10 and NumPy 2.4.
"""

from __future__ import annotations

from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.facts import Member
from allaboard.late_pattern import compile_late

_NUMPY_READ_LINE = compile_late(
    r"\b(?:np|numpy|onp)\.(?:as(?:any|contiguous|fortran)?array|ascontiguousarray|array|copy|is(?:finite|nan|inf)"
    r"|float\d+)\s*\(|\bmemoryview\s*\("
)
"""Calls of NumPy that take an array in C without a Python frame; only the source line shows them."""
_NUMPY_ARRAY_CALL = compile_late(r"\bas(?:any)?array\s*\(|\barray\s*\(")
_JAX_TREE_FILE = "jax/_src/tree_util.py"
"""It calls a C function for each leaf (`jax.tree.map(np.asarray, …)`); a Python one has its own frame."""


def reads_jax_value(member: Member) -> bool:
    """Return True if the main thread of a JAX program is where NumPy asks for a value.

    If it uses no CPU there, it waits for the result, and so for the peers that compute it too.
    """
    stack = member.stack
    if (
        member.framework != "jax"
        or stack is None
        or not stack.frames
        or classify_stack(stack) is not Spot.USER
    ):
        return False
    leaf = stack.frames[0]
    if leaf.is_user:
        return _NUMPY_READ_LINE.search(leaf.text) is not None
    if leaf.file.endswith(_JAX_TREE_FILE):
        return True
    return (
        "/numpy/" in leaf.file and _NUMPY_ARRAY_CALL.search(leaf.text) is not None
    )  # as np.save does, for one
