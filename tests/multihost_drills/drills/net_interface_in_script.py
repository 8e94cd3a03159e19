"""The script itself chooses the interface for gloo, and one host has none of that name."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET010",
    blames=(2,),
    environment=lambda host, env: env | {"INTERFACE": "ib7" if host == 2 else "eth0"},
    scripts=dict.fromkeys(range(4), "torch_interface.py"),
)
