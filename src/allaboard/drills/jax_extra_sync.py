"""JAX: a rank calls sync_global_devices, and the others do not: they wait for it inside their pmap."""

from allaboard.contracts import Drill

DRILL = Drill(script="jax_pmap.py", expects="HANG006", fewest=3, inside=True, ends=False)
