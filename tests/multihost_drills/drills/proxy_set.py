"""Every host has a web proxy set and exempts nothing; PyTorch does not look at it."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="",
    environment=lambda host, env: (
        env | {"http_proxy": "http://10.77.9.9:3128", "https_proxy": "http://10.77.9.9:3128"}
    ),
    arguments=("--steps", "20"),
    options=(),
    exit_codes=(0,),
    long="a healthy start",
)
