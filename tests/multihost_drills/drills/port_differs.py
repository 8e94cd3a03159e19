"""One host is told another port of its neighbour than the neighbour itself."""

import json

from multihost_drills.contract import HostDrill


def other_port(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    if host == 2:
        told["cluster"]["worker"][3] = "h3:29600"
    return env | {"TF_CONFIG": json.dumps(told)}


DRILL = HostDrill(
    framework="tensorflow",
    expects="JOIN007",
    blames=(2,),
    environment=other_port,
    long="tf-wrong-port is the same on one host",
)
