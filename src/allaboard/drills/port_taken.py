"""The port where rank 0 is to listen is taken when it comes to its init."""

from allaboard.contracts import Drill

DRILL = Drill(script="torch_ddp.py", expects="NET005", guilty=0, workers=2, inside=True)
