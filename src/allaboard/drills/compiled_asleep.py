"""A rank sleeps while the others wait for it in a collective of a graph of torch.compile."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="torch_compiled.py",
    expects="HANG005",
    inside=True,
    ends=False,
)
