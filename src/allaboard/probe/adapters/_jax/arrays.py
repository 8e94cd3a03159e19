"""JAX's own arrays, told from tracers and from the program's classes without asking them for anything.

A tracer computes where it comes from when it is asked for an attribute, by going through all that was
traced so far; a class of the program may raise what it likes.
"""

from __future__ import annotations


def is_array(value: object) -> bool:
    """Return True if this is an array that has been computed, or will be."""
    return type(value).__name__ == "ArrayImpl"


def staged(core: object) -> bool:
    """Return True if what is called now is only traced into a program for later; False if that is
    not known.

    ``core`` is `jax._src.core`. A trace stands in for values within another one (`parent_trace`),
    and only that of a program to be compiled computes nothing.
    """
    trace = getattr(getattr(core, "trace_ctx", None), "trace", None)
    for _ in range(16):
        if trace is None:
            return False
        if type(trace).__name__ == "DynamicJaxprTrace":
            return True
        trace = getattr(trace, "parent_trace", None)
    return False
