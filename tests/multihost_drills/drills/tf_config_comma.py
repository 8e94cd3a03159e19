"""One host's TF_CONFIG has a comma too many, after its last worker."""

from multihost_drills.contract import HostDrill


def one_more(host: int, env: dict[str, str]) -> dict[str, str]:
    return env | {"TF_CONFIG": env["TF_CONFIG"].replace("]", ",]")} if host == 2 else env


DRILL = HostDrill(
    framework="tensorflow",
    expects="CFG002",
    on=(2,),
    environment=one_more,
    within=20.0,
    long="the corpus of configurations stages the rule",
    allowed=("JOIN003", "JOIN001", "EXIT002"),
    exit_codes=(1, 2, 3),
)
