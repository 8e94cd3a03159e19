"""In a graph of torch.compile, a rank calls a gather where the others call an all-reduce."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_compiled.py",
    expects="HANG020",
    fewest=3,
    inside=True,
    ends=False,
)
