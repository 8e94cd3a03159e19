"""Two hosts are told the same task of the cluster."""

import json

from multihost_drills.contract import HostDrill


def other_task(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    told["task"]["index"] = 1 if host == 2 else host
    return env | {"TF_CONFIG": json.dumps(told)}


DRILL = HostDrill(
    framework="tensorflow",
    expects="JOIN005",
    blames=(1, 2),
    environment=other_task,
    long="tf-two-tasks is the same on one host",
)
