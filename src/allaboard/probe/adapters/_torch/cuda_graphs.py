"""Steps that a program has captured as a CUDA graph: each replay makes them anew, without any Python.

What is captured once is counted as one step; of the replays nothing else would be seen, and a job that
trains would seem to stand still. Hooked on ``torch.cuda.graphs.CUDAGraph``, through which PyTorch's own uses
of graphs go too (``torch.cuda.graph``, ``mode="reduce-overhead"``). Collectives in a graph are not counted.
"""

from __future__ import annotations

import functools
import weakref

from ... import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


CALLS = ("capture_begin", "capture_end", "replay")


def hook(module: Any) -> None:
    """Count the steps in each replay of a graph; a version without that class is left alone."""
    cls: Any = getattr(module, "CUDAGraph", None)
    calls: list[Any] = [getattr(cls, name, None) for name in CALLS]
    if not all(map(callable, calls)):
        return
    begin, end, replay = calls
    begun_at: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    steps_in: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun_at[self] = _steps_made()
        steps_in.pop(self, None)
        return begin(self, *args, **kwargs)

    @functools.wraps(end)
    def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = end(self, *args, **kwargs)
        steps = _steps_made() - begun_at.pop(self, 0)
        if steps > 0:
            steps_in[self] = steps
        return result

    @functools.wraps(replay)
    def replayed(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = replay(self, *args, **kwargs)
        for _ in range(steps_in.get(self, 0)):
            member.step()
        return result

    cls.capture_begin, cls.capture_end, cls.replay = capture_begin, capture_end, replayed


def _steps_made() -> int:
    box = member.here.box
    return int(box.steps) if box is not None else 0
