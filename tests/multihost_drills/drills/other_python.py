"""One host trains with another minor version of Python: a real one, of this machine. No framework is at hand
for both, so the job has none: it comes to the roll call, where versions are compared, and leaves."""

from multihost_drills.contract import HostDrill
from testbed import Bed
from testbed.requirements import other_python

PLACE = "/run/bed/bin"


def _other(bed: Bed) -> None:
    folder = bed.path("h2", PLACE)
    folder.mkdir(parents=True)
    found = other_python()
    assert found is not None
    (folder / "python").symlink_to(found)


DRILL = HostDrill(
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
)
