"""Hosts and agents that never start, start late, freeze, leave or die."""

from __future__ import annotations

import signal

from multihost_drills.contract import HostDrill
from testbed import Bed, overlay

AGENT = r"\S+ -m allaboard run "
"""Its keeper, which bears the same name and clears up, is younger."""


def kill(bed: Bed) -> None:
    bed.signal("h1", signal.SIGKILL, AGENT)


AGENT_AGENT_KILLED_UNSEEN = r"\S+ -m allaboard run "


def kill_agent_killed_unseen(bed: Bed) -> None:
    bed.signal("h1", signal.SIGKILL, AGENT_AGENT_KILLED_UNSEEN)


WORKER = r"\S+ \S*torch_ddp\.py"


def kill_first_killed(bed: Bed) -> None:
    bed.signal("h0", signal.SIGKILL, WORKER)


def freeze(bed: Bed) -> None:
    bed.run("h1", "sh", "-c", "kill -STOP -1")


DRILLS = {
    "agent-killed": HostDrill(
        title="The agent of a host is killed in mid-training, and its worker ends with it",
        framework="torch",
        expects="EXIT010",
        hosts=3,
        blames=(1,),
        on=(0, 2),
        then=kill,
        within=8.0,
        exit_codes=(1, 137, -9),
    ),
    "agent-killed-unseen": HostDrill(
        title=(
            "The agent of a host is killed, and its worker with it, while rank 0 is in an "
            "evaluation: it falls later"
        ),
        framework="torch",
        expects="EXIT010",
        hosts=2,
        blames=(1,),
        on=(0,),
        faults={0: "evaluates"},
        arguments=("--at-step", "31"),
        then=kill_agent_killed_unseen,
        within=40.0,
        exit_codes=(1, 137, -9),
        long="20 s of an evaluation",
    ),
    "dies-before-leader": HostDrill(
        title=(
            "A worker dies before the first host comes to its init, and nothing bounds the roll "
            "call: all are told"
        ),
        framework="jax",
        expects="JOIN003",
        hosts=3,
        blames=(1,),
        on=(0, 2),
        faults={1: "dies-before-init"},
        late={0: 4.0},
        options=(),
        ends=False,
        within=6.0,
        allowed=("EXIT002",),
    ),
    "dies-in-import": HostDrill(
        title="On one host the import of the framework fails: a library that it needs is not there",
        framework="torch",
        expects="JOIN003",
        blames=(2,),
        arrange=lambda bed: overlay.broken(bed, "h2", "torch"),
        environment=lambda host, env: overlay.first(env) if host == 2 else env,
        on=(0, 1, 3),
        allowed=("EXIT002",),
        exit_codes=(1, 3),
    ),
    "first-killed": HostDrill(
        title=(
            "The worker of the host where all meet is killed in mid-training; the others fall "
            "because of it"
        ),
        framework="torch",
        expects="EXIT001",
        hosts=3,
        blames=(0,),
        then=kill_first_killed,
        exit_codes=(1, 137, -9),
    ),
    "host-away-tf2-ps": HostDrill(
        title=(
            "A worker's host of a ParameterServerStrategy loses its cable in mid-training: the "
            "chief waits for what it had handed to it, and nobody else says which host that is"
        ),
        framework="tensorflow",
        expects="HANG019",
        blames=(2,),
        on=(0, 1, 3),
        roles=("chief", "worker", "worker", "ps"),
        scripts=dict.fromkeys(range(4), "tf2_ps.py"),
        then=lambda bed: bed.unplug("h2"),
        options=(),
        ends=False,
        within=60.0,
        allowed=("NET012",),
        long="36 s until a host counts as away",
    ),
    "host-frozen": HostDrill(
        title=(
            "All processes of a host are stopped in mid-training, its agent too; its kernel "
            "answers for them"
        ),
        framework="torch",
        expects="HANG017",
        hosts=3,
        blames=(1,),
        on=(0, 2),
        then=freeze,
        ends=False,
        within=50.0,
        exit_codes=(143, 137, -9, -15),
        allowed=("HANG005", "HANG006", "EXIT005"),
    ),
    "host-leaves-early": HostDrill(
        title="The worker of one host ends with exit code 0 in mid-training: it is told there, too",
        framework="torch",
        expects="EXIT004",
        hosts=3,
        blames=(1,),
        faults={1: "leaves-early"},
        exit_codes=(0, 1),
        says=r"failed after .*, exit code",
        within=60.0,
    ),
    "host-never-starts": HostDrill(
        title="Four hosts are meant; on one of them nobody starts the job",
        framework="torch",
        expects="JOIN001",
        blames=(2,),
        absent=(2,),
        within=12.0,
    ),
    "jax-asleep-before-init": HostDrill(
        title=(
            "A process of JAX sleeps in its own code before it comes to its init: it is alive, "
            "and known by its rank"
        ),
        framework="jax",
        hosts=3,
        expects="JOIN002",
        blames=(1,),
        faults={1: "asleep-before-init"},
        options=("--timeout", "6", "--timeout-hard", "14"),
        exit_codes=(3,),
        within=9.0,
    ),
    "leader-dies-in-import": HostDrill(
        title=(
            "On the host where all are to meet the import of the framework fails; the others "
            "learn why"
        ),
        framework="torch",
        expects="JOIN003",
        blames=(0,),
        on=(1, 2, 3),
        arrange=lambda bed: overlay.broken(bed, "h0", "torch"),
        environment=lambda host, env: overlay.first(env) if host == 0 else env,
        allowed=("EXIT002",),
        exit_codes=(1, 3),
    ),
    "starts-late": HostDrill(
        title=(
            "One host starts late, which is no fault: the job waits, every host says for whom, "
            "and trains"
        ),
        framework="torch",
        expects="",
        on=(0, 1, 3),
        late={2: 40.0},
        says=r"3 of 4 aboard, waiting \d+ s for (rank 2: not joined yet|worker 2: \w+)",
        arguments=("--steps", "20"),
        options=("--timeout", "90"),
        exit_codes=(0,),
        long="40 s of waiting",
    ),
}
