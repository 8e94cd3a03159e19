"""What many rows of the tables of drills share. Each is called as `Drill` is, and takes the place of it."""

from __future__ import annotations

from functools import partial

from allaboard.contracts import Drill

hang_drill = partial(
    Drill, inside=True, options=("--on-hang", "stop", "--hang-after", "8"), exit_codes=(4,)
)
"""The script stages a hang, and the run ends by itself after eight seconds of it."""
certain_hang_drill = partial(Drill, inside=True, options=("--on-hang", "stop"), exit_codes=(4,))
"""The script stages a hang that ends the run as soon as it is proven."""
start_drill = partial(Drill, inside=True, exit_codes=(3,))
"""The script stages a fault during the start: the roll call fails."""
lasting_drill = partial(Drill, inside=True, ends=False)
"""The script stages a fault that does not end the run: that is ended once the fault is named."""
