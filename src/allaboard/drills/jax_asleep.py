"""JAX: a rank sleeps between two steps while the others wait for the values of theirs."""

from allaboard.contracts import Drill

DRILL = Drill(script="jax_psum.py", expects="HANG005", inside=True, ends=False)
