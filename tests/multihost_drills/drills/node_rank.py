"""One host is given NODE_RANK where the script reads RANK."""

from multihost_drills.contract import HostDrill


def node_rank(host: int, env: dict[str, str]) -> dict[str, str]:
    if host != 2:
        return env
    return {k: v for k, v in env.items() if k != "RANK"} | {"NODE_RANK": "2"}


DRILL = HostDrill(
    framework="torch",
    expects="JOIN003",
    blames=(2,),
    environment=node_rank,
    on=(0, 1, 3),
    allowed=("EXIT002",),
    exit_codes=(1, 3),
)
