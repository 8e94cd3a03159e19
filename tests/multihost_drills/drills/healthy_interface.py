"""Nothing is wrong: the script chooses the interface for gloo, on a host too whose own name is 127.0.1.1."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="",
    hosts=3,
    arrange=lambda bed: bed.name("h2", "h2", "127.0.1.1"),
    environment=lambda host, env: env | {"INTERFACE": "eth0"},
    scripts=dict.fromkeys(range(3), "torch_interface.py"),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
)
