"""The threads in which PyTorch's autograd engine runs the Python part of a backward.

While the main thread is in ``backward``, the engine calls the hooks of DDP and FSDP, and the ``backward`` of
custom functions, in threads of its own (one a device). CPython did not start them: their outermost frame is
the function that the engine called. What such a thread waits for, the main thread waits for. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Frame
from allaboard.late_pattern import compile_late

_ENGINE_ENTRY = compile_late(
    r"(?:^|/)torch/(?:autograd/(?:graph|__init__|variable)|_tensor|tensor)\.py$"
)
"""Files from which a program enters the engine; their innermost frame is the entry."""
_ENTRY_FUNCTIONS = ("backward", "grad", "_engine_run_backward", "run_backward")
_PYTHON_THREAD = compile_late(r"(?:^|/)(?:threading|multiprocessing/process|_bootstrap)\.py$")
_OTHER_ENTRY = compile_late(r"(?:^|/)torch/distributed/rpc/|(?:^|/)tensorflow/")
"""Outermost frames of threads that other parts of native code run Python in."""
_FUNCTION = compile_late(r"(?:^|/)torch/(?:autograd/function|distributed/.*|nn/parallel/.*)\.py$")
"""Files that show the engine's work: a custom function, or a hook of DDP, FSDP or a communication hook."""


def with_backward_thread(
    main: tuple[Frame, ...], other_threads: Iterable[tuple[Frame, ...]]
) -> tuple[Frame, ...]:
    """Return the main thread's frames (innermost first), below those of the engine's thread if it stands in
    ``backward`` and another thread runs the Python part of that."""
    if not main or not _is_engine_entry(main[0]):
        return main
    candidates = [t for t in other_threads if t and _is_engine_thread(t)]
    if not candidates:
        return main
    # With several devices there are several: one that shows a collective tells more than one without.
    chosen = max(candidates, key=lambda t: any("/torch/distributed/" in f"/{f.file}" for f in t))
    return (*chosen, *main)


def _is_engine_entry(frame: Frame) -> bool:
    return frame.function in _ENTRY_FUNCTIONS and bool(_ENGINE_ENTRY.search(frame.file))


def _is_engine_thread(frames: tuple[Frame, ...]) -> bool:
    outermost = frames[-1]
    if (
        outermost.function == "<module>"
        or _PYTHON_THREAD.search(outermost.file)
        or _OTHER_ENTRY.search(outermost.file)
    ):
        return False
    return any(_FUNCTION.search(f.file) for f in frames)
