"""The agent that a drop-in starts beside a process, whatever kind of number the rank is."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
from allaboard.probe import attach

class Integer:
    "What an integer of another library is: numpy's is no int, and says that it is one."
    def __index__(self): return 0

declared = {"rank": Integer(), "world_size": 2, "place": "tcp://127.0.0.1:1"}
peer = attach.attach(declared, 1.0, watch=False)
print(peer is not None)
if peer is not None:
    peer.process.kill()
    peer.process.wait()
    peer.release()
    attach.shutil.rmtree(peer.folder)
"""


def test_a_rank_may_be_an_integer_of_another_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
