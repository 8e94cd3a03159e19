"""A JAX process's batch is not finite; the average carries it to all."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="jax_psum.py",
    expects="NUM005",
    workers=2,
    guilty=1,
    blames=(0, 1),
    inside=True,
    fault="jax-nan-loss",
    ends=False,
)
