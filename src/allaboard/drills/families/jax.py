"""Faults in JAX jobs."""

from __future__ import annotations

from allaboard.contracts import Drill

DRILLS = {
    "jax-asleep": Drill(
        title="JAX: a rank sleeps between two steps while the others wait for the values of theirs",
        script="jax_psum.py",
        expects="HANG005",
        inside=True,
        ends=False,
    ),
    "jax-collectives-differ": Drill(
        title=(
            "A JAX process makes a collective of another size than the others, who are at their "
            "gradients"
        ),
        script="jax_psum.py",
        expects="EXIT009",
        workers=2,
        guilty=0,
        blames=(0, 1),
        inside=True,
    ),
    "jax-extra-sync": Drill(
        title=(
            "JAX: a rank calls sync_global_devices, and the others do not: they wait for it "
            "inside their pmap"
        ),
        script="jax_pmap.py",
        expects="HANG006",
        fewest=3,
        inside=True,
        ends=False,
    ),
    "jax-nan-loss": Drill(
        title="A JAX process's batch is not finite; the average carries it to all",
        script="jax_psum.py",
        expects="NUM005",
        workers=2,
        guilty=1,
        blames=(0, 1),
        inside=True,
        fault="jax-nan-loss",
        ends=False,
    ),
    "jax-stuck-in-python": Drill(
        title=(
            "JAX: a rank spins in a loop of its own code while the others wait for the values of "
            "their steps"
        ),
        script="jax_psum.py",
        expects="HANG002",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
}
