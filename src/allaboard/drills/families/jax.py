"""Faults in JAX jobs."""

from __future__ import annotations

from allaboard.contracts import Drill
from allaboard.drills.base_rows import hang_drill, lasting_drill

DRILLS = {
    "jax-asleep": lasting_drill(
        title=(
            "JAX: a rank sleeps between two steps while the others wait for the results of their steps"
        ),
        script="jax_psum.py",
        expects="HANG005",
    ),
    "jax-collectives-differ": Drill(
        title=(
            "A JAX process calls a collective of another size while the others reduce their gradients"
        ),
        script="jax_psum.py",
        expects="HANG009",
        workers=2,
        guilty=0,
        blames=(0, 1),
        inside=True,
    ),
    "jax-extra-sync": lasting_drill(
        title=(
            "JAX: only one rank calls sync_global_devices; the others wait for it inside their pmap"
        ),
        script="jax_pmap.py",
        expects="HANG006",
        fewest=3,
    ),
    "jax-mesh-order": hang_drill(
        title="JAX: a process makes its mesh of the devices in another order; the first step never ends",
        script="jax_psum.py",
        expects="HANG006",
        workers=2,
        guilty=1,
        blames=(0, 1),
    ),
    "jax-nan-loss": lasting_drill(
        title="The batch of a JAX process is not finite; the average spreads it to all processes",
        script="jax_psum.py",
        expects="NUM005",
        workers=2,
        guilty=1,
        blames=(0, 1),
        fault="jax-nan-loss",
    ),
    "jax-stuck-in-python": hang_drill(
        title=(
            "JAX: a rank loops forever in its own code while the others wait for the results of "
            "their steps"
        ),
        script="jax_psum.py",
        expects="HANG002",
    ),
}
