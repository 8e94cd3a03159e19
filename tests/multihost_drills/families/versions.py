"""Hosts with other versions, backends, clocks or scripts."""

from __future__ import annotations

from multihost_drills.contract import HostDrill
from testbed import Bed, overlay
from testbed.clock_skew import skewed
from testbed.requirements import other_python

PLACE = "/run/bed/bin"


def _other(bed: Bed) -> None:
    folder = bed.path("h2", PLACE)
    folder.mkdir(parents=True)
    found = other_python()
    assert found is not None
    (folder / "python").symlink_to(found)


DRILLS = {
    "clock-off": HostDrill(
        title="The wall clock of one host is five minutes ahead",
        framework="torch",
        expects="ENV009",
        hosts=3,
        blames=(2,),
        environment=lambda host, env: skewed(env, 300) if host == 2 else env,
        needs=("clock",),
        arguments=("--steps", "20"),
        options=(
            "--env",
            "LD_PRELOAD=",
        ),  # the agent's clock is what counts, and torch takes it ill
        exit_codes=(0,),
    ),
    "other-backend": HostDrill(
        title="One host uses another backend than the others",
        framework="torch",
        expects="ENV010",
        hosts=3,
        blames=(2,),
        faults={2: "other-backend"},
    ),
    "other-numpy": HostDrill(
        title="One host has another numpy",
        framework="jax",
        expects="ENV006",
        blames=(1,),
        arrange=lambda bed: overlay.other_version(bed, "h1", "numpy", "2.3.5"),
        environment=lambda host, env: overlay.first(env) if host == 1 else env,
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="as with another torch",
    ),
    "other-python": HostDrill(
        title=(
            "One host trains with another minor version of Python, one that is installed on this "
            "machine"
        ),
        # No framework is at hand for both, so the job has none: it comes to the roll call, where versions
        # are compared, and leaves.
        framework="torch",
        expects="ENV006",
        blames=(2,),
        arrange=_other,
        environment=lambda host, env: (
            {**env, "PATH": f"{PLACE}:{env['PATH']}", "VIRTUAL_ENV": PLACE} if host == 2 else env
        ),
        scripts=dict.fromkeys(range(4), "no_framework.py"),
        options=(),
        exit_codes=(0,),
        needs=("python",),
        says="python differs: h2",
    ),
    "other-version": HostDrill(
        title="One host has an older build of the framework",
        framework="torch",
        expects="ENV006",
        hosts=3,
        blames=(2,),
        arrange=lambda bed: overlay.other_version(bed, "h2", "torch", "2.12.1"),
        environment=lambda host, env: overlay.first(env) if host == 2 else env,
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
}
