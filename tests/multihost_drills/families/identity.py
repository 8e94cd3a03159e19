"""Hosts that disagree on who is who: ranks, world sizes, orders, first hosts."""

from __future__ import annotations

import json

from multihost_drills.contract import MEETING_PORT, HostDrill


def node_rank(host: int, env: dict[str, str]) -> dict[str, str]:
    if host != 2:
        return env
    return {k: v for k, v in env.items() if k != "RANK"} | {"NODE_RANK": "2"}


def other_order(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    workers = told["cluster"]["worker"]
    if host == 2:
        workers[1], workers[3] = workers[3], workers[1]
    return env | {"TF_CONFIG": json.dumps(told)}


def other_port(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    if host == 2:
        told["cluster"]["worker"][3] = "h3:29600"
    return env | {"TF_CONFIG": json.dumps(told)}


def other_task(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    told["task"]["index"] = 1 if host == 2 else host
    return env | {"TF_CONFIG": json.dumps(told)}


def one_more(host: int, env: dict[str, str]) -> dict[str, str]:
    return env | {"TF_CONFIG": env["TF_CONFIG"].replace("]", ",]")} if host == 2 else env


def other_chief(host: int, env: dict[str, str]) -> dict[str, str]:
    told = json.loads(env["TF_CONFIG"])
    if host == 2:
        cluster = told["cluster"]
        cluster["chief"][0], cluster["worker"][2] = cluster["worker"][2], cluster["chief"][0]
    return env | {"TF_CONFIG": json.dumps(told)}


DRILLS = {
    "no-rank": HostDrill(
        title="One host has no RANK",
        framework="torch",
        expects="JOIN003",
        blames=(2,),
        environment=lambda host, env: {k: v for k, v in env.items() if k != "RANK" or host != 2},
        on=(0, 1, 3),
        allowed=("EXIT002",),
        exit_codes=(1, 3),
    ),
    "node-rank": HostDrill(
        title="One host has NODE_RANK, but the script reads RANK",
        framework="torch",
        expects="JOIN003",
        blames=(2,),
        environment=node_rank,
        on=(0, 1, 3),
        allowed=("EXIT002",),
        exit_codes=(1, 3),
    ),
    "order-differs": HostDrill(
        title="One host has the same workers in another order",
        framework="tensorflow",
        expects="JOIN007",
        blames=(2,),
        environment=other_order,
    ),
    "port-differs": HostDrill(
        title="One host has another port for its neighbour than the neighbour itself",
        framework="tensorflow",
        expects="JOIN007",
        blames=(2,),
        environment=other_port,
        long="tf-wrong-port is the same on one host",
    ),
    "restarts-differ": HostDrill(
        title="One host was started without --on-failure restart, which the others have",
        framework="torch",
        expects="ENV011",
        blames=(2,),
        environment=lambda host, env: env | {"ALLABOARD_SECRET": "not so secret"},
        arguments=("--steps", "20"),
        hosts=3,
        options=("--on-failure", "restart"),
        other_options={2: ()},
        exit_codes=(0,),
    ),
    "same-rank": HostDrill(
        title="Two hosts have the same rank, and another rank is missing",
        framework="torch",
        expects="JOIN005",
        blames=(1, 2),
        environment=lambda host, env: env | ({"RANK": "1"} if host == 2 else {}),
    ),
    "same-task": HostDrill(
        title="Two hosts have the same task of the cluster",
        framework="tensorflow",
        expects="JOIN005",
        blames=(1, 2),
        environment=other_task,
        long="tf-two-tasks is the same on one host",
    ),
    "tf-config-comma": HostDrill(
        title="One host's TF_CONFIG has a trailing comma after its last worker",
        framework="tensorflow",
        expects="CFG002",
        on=(2,),
        environment=one_more,
        within=20.0,
        long="the corpus of configurations stages the rule",
        allowed=("JOIN003", "JOIN001", "EXIT002"),
        exit_codes=(1, 2, 3),
    ),
    "world-sizes-differ": HostDrill(
        title="One host has another world size than the others",
        framework="torch",
        expects="JOIN006",
        blames=(3,),
        environment=lambda host, env: env | ({"WORLD_SIZE": "5"} if host == 3 else {}),
    ),
    "port-zero": HostDrill(
        title="MASTER_PORT is 0000 on every host, which means any free port",
        framework="torch",
        expects="NET019",
        hosts=2,
        blames=(1,),
        on=(1,),
        environment=lambda host, env: env | {"MASTER_PORT": "0000"},
        within=14.0,
        bound=14.0,
    ),
    "wrong-chief": HostDrill(
        title="One host's TF_CONFIG has another host as the chief",
        framework="tensorflow",
        expects="NET017",
        blames=(2,),
        roles=("chief", "worker", "worker", "worker"),
        scripts=dict.fromkeys(range(4), "tf_mwms.py"),
        environment=other_chief,
    ),
    "wrong-first-host": HostDrill(
        title=(
            "One host's MASTER_ADDR is that of another host of the job, which does not hold rank 0"
        ),
        framework="torch",
        expects="NET017",
        hosts=3,
        blames=(2,),
        environment=lambda host, env: env | ({"MASTER_ADDR": "h1"} if host == 2 else {}),
    ),
    "wrong-first-host-jax": HostDrill(
        title=(
            "One host's JAX coordinator address is that of another host of the job, which is not "
            "process 0"
        ),
        framework="jax",
        expects="NET017",
        hosts=3,
        blames=(2,),
        on=(2,),
        environment=lambda host, env: (
            env | ({"JAX_COORDINATOR_ADDRESS": f"h1:{MEETING_PORT}"} if host == 2 else {})
        ),
        allowed=("JOIN001",),
    ),
    "wrong-first-host-of-first": HostDrill(
        title="Every host's MASTER_ADDR is that of the second host; rank 0 runs on the first",
        framework="torch",
        expects="NET017",
        hosts=3,
        blames=(0,),
        on=(0,),
        environment=lambda host, env: env | {"MASTER_ADDR": "h1"},
        within=9.0,
        allowed=("NET002", "JOIN001"),
    ),
}
