"""In a job of PyTorch's RPC alone, an actor ends with exit code 3 while the learner waits for its answer."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_rpc.py", expects="EXIT003", inside=True)
