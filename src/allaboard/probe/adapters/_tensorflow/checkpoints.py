"""When a program writes and reads checkpoints with `tf.train.Checkpoint` (its manager and Keras's callback
do, too). Tried on TensorFlow 2.21.
"""

from __future__ import annotations

import functools

from ... import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def saver(module: Any) -> None:
    """Hooks `tensorflow.python.checkpoint.checkpoint`."""
    cls = module.TrackableSaver
    cls.save = _told(cls.save, read=False)
    cls.restore = _told(cls.restore, read=True)


def _told(call: Callable[..., Any], read: bool) -> Callable[..., Any]:
    @functools.wraps(call)
    def inside(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(self, *args, **kwargs)
        box = member.here.box
        path = args[0] if args else kwargs.get("save_path" if read else "file_prefix")
        if box is not None and path is not None:  # None: there is nothing to restore
            box.count_checkpoint(read)
        return result

    return inside
