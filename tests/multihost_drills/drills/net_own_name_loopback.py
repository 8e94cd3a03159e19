"""One host's own name resolves to 127.0.1.1 on itself, as Debian's installer writes it."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET009",
    blames=(2,),
    arrange=lambda bed: bed.name("h2", "h2", "127.0.1.1"),
)
