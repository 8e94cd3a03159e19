"""One host was started without the restarts that the others were promised."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="ENV011",
    blames=(2,),
    environment=lambda host, env: env | {"ALLABOARD_SECRET": "not so secret"},
    arguments=("--steps", "20"),
    hosts=3,
    options=("--on-failure", "restart"),
    other_options={2: ()},
    exit_codes=(0,),
)
