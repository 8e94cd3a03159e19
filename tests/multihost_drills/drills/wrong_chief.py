"""One host's TF_CONFIG has another host as the chief."""

import json

from multihost_drills.contract import HostDrill


def other_chief(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    if host == 2:
        cluster = told["cluster"]
        cluster["chief"][0], cluster["worker"][2] = cluster["worker"][2], cluster["chief"][0]
    return env | {"TF_CONFIG": json.dumps(told)}


DRILL = HostDrill(
    framework="tensorflow",
    expects="NET017",
    blames=(2,),
    roles=("chief", "worker", "worker", "worker"),
    scripts=dict.fromkeys(range(4), "tf_mwms.py"),
    environment=other_chief,
)
