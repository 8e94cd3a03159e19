"""Counts checkpoints that a program writes and reads with `tf.train.Checkpoint`, as its manager and
Keras's callback do. Tried on TensorFlow 2.21.
"""

from __future__ import annotations

import functools

from ... import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def hook_saver(module: Any) -> None:
    """Hook `tensorflow.python.checkpoint.checkpoint`."""
    cls = module.TrackableSaver
    cls.save = _counting(cls.save, is_read=False)
    cls.restore = _counting(cls.restore, is_read=True)


def _counting(call: Callable[..., Any], is_read: bool) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(self, *args, **kwargs)
        box = member.here.box
        path = args[0] if args else kwargs.get("save_path" if is_read else "file_prefix")
        if box is not None and path is not None:  # None: there is nothing to restore
            box.count_checkpoint(is_read)
        return result

    return wrapper
