"""The thread that trains raises; the main thread waits for its end, and ends with exit code 0."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_threaded.py", expects="EXIT011", inside=True, exit_codes=(0,))
