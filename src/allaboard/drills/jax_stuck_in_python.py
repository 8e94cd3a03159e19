"""JAX: a rank spins in a loop of its own code while the others wait for the values of their steps."""

from allaboard.contracts import Drill

DRILL = Drill(
    script="jax_psum.py",
    expects="HANG002",
    inside=True,
    options=("--on-hang", "stop", "--hang-after", "8"),
    exit_codes=(4,),
)
