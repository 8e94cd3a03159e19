"""accelerate's own count of the processes, against what the launcher put into the environment.

Without CUDA accelerate (and Hugging Face's Trainer, which is built on it) joins no group unless it is
told that the CPU is meant: each process then trains a whole model by itself. Tried on accelerate 1.15.
"""

from __future__ import annotations

import functools
import os

from ... import member
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOTE = "accelerate alone"
SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
"""Where accelerate itself looks for the number of processes; accelerate/state.py."""


def state(module: Any) -> None:
    made = module.PartialState.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        try:
            look(self.num_processes)
        except Exception as error:
            reraise_from_handler(error)

    module.PartialState.__init__ = init


def look(count: int) -> None:
    """It is called again and again, and says the same each time."""
    if count == 1 and NOTE not in member.here.notes:
        for name in SIZES:
            size = os.environ.get(name, "")
            if size.isdecimal() and int(size) > 1:
                member.here.note(NOTE, "%s=%s" % (name, size))
                return
