"""One host has the same workers in another order."""

import json

from multihost_drills.contract import HostDrill


def other_order(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    workers = told["cluster"]["worker"]
    if host == 2:
        workers[1], workers[3] = workers[3], workers[1]
    return env | {"TF_CONFIG": json.dumps(told)}


DRILL = HostDrill(
    framework="tensorflow",
    expects="JOIN007",
    blames=(2,),
    environment=other_order,
)
