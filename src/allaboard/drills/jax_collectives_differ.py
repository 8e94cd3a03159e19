"""A JAX process makes a collective of another size than the others, who are at their gradients."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="jax_psum.py",
    expects="EXIT009",
    workers=2,
    guilty=0,
    blames=(0, 1),
    inside=True,
)
