"""Hosts and agents that never start, start late, freeze, leave or die."""

from __future__ import annotations

import signal
import time

from allaboard.cluster.transport.tcp_keepalive import HOST_AWAY_AFTER_S
from multihost_drills.contract import HostDrill
from testbed import Bed, overlay

TAKEOVER_S = 5.0
"""Seconds within which another agent leads once the leading one was killed."""
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


def kill_leader_then_stop_server(bed: Bed) -> None:
    """The fault is staged once another agent has had its time to take the lead."""
    bed.signal("h0", signal.SIGKILL, AGENT)
    time.sleep(TAKEOVER_S)
    bed.signal("h3", signal.SIGSTOP, r"\S+ \S*tf1_ps\.py")


def divide_network_then_stop_server(bed: Bed) -> None:
    """The leader's host is cut off until the others have chosen the next leader, and comes back."""
    bed.unplug("h0")
    time.sleep(HOST_AWAY_AFTER_S + 10)
    bed.plug("h0")
    time.sleep(12)
    bed.signal("h3", signal.SIGSTOP, r"\S+ \S*tf1_ps\.py")


DRILLS = {
    "agent-killed": HostDrill(
        title=(
            "The agent of a host is killed in the middle of training, and its worker ends with it"
        ),
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
            "evaluation and fails later"
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
            "A worker dies before the first host reaches init, and the roll call has no time "
            "limit: all hosts report it"
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
        title="On one host the import of the framework fails: a library is missing",
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
            "The worker of the leader's host is killed in the middle of training; the others fail "
            "as a consequence"
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
            "The host of a ParameterServerStrategy's worker loses its network in the middle of "
            "training: the chief waits for its result, and TensorFlow does not say which host it "
            "is"
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
            "All processes of a host, its agent too, are stopped in the middle of training; its "
            "kernel still answers"
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
        title=(
            "The worker of one host exits with code 0 in the middle of training: it is reported "
            "there, too"
        ),
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
        title="The job has four hosts; on one of them it is not started",
        framework="torch",
        expects="JOIN001",
        blames=(2,),
        absent=(2,),
        within=12.0,
    ),
    "jax-asleep-before-init": HostDrill(
        title=(
            "A JAX process sleeps in its own code before init: it is alive, and its rank is known"
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
    "leader-agent-killed": HostDrill(
        title=(
            "The agent that leads the roll call is killed in the middle of training, and its "
            "worker ends with it: the other hosts name it"
        ),
        framework="torch",
        expects="EXIT012",
        hosts=3,
        blames=(0,),
        on=(1, 2),
        then=lambda bed: bed.signal("h0", signal.SIGKILL, AGENT),
        within=8.0,
        says=r"the agent of h0 \(10\.77\.0\.1:\d+\), which led the job, has gone",
        exit_codes=(1, 137, -9),
    ),
    "leader-agent-killed-ps": HostDrill(
        title=(
            "The leading agent is killed, and worker 0 with it; the other workers of a "
            "parameter server job go on. Then the server is stopped: the agent that leads now "
            "names it on every host"
        ),
        framework="tensorflow",
        expects="HANG001",
        blames=(3,),
        on=(1, 2),
        roles=("worker", "worker", "worker", "ps"),
        then=kill_leader_then_stop_server,
        options=(),
        ends=False,
        within=15.0,
        says=r"(this host's|that of h1) leads now",
        allowed=("EXIT012", "PS001", "PS016"),
    ),
    "leader-cut-off-ps": HostDrill(
        title=(
            "The network of the leader's host is down for 40 s in the middle of training: the "
            "larger side chooses the next leader, and the former one follows it. Then the "
            "parameter server is stopped: every host names it"
        ),
        framework="tensorflow",
        expects="HANG001",
        blames=(3,),
        on=(0, 1, 2),
        roles=("worker", "worker", "worker", "ps"),
        then=divide_network_then_stop_server,
        options=(),
        ends=False,
        within=15.0,
        says=r"(this host's|that of h1|the agent of h1) leads now",
        allowed=("HANG019", "NET012", "PS001", "PS016", "EXIT002", "EXIT005"),
        long="40 s until the next leader is chosen",
    ),
    "leader-dies-in-import": HostDrill(
        title="On the leader's host the import of the framework fails; the others report why",
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
            "One host starts late, which is not a fault: the job waits, every host reports for "
            "which member, and trains"
        ),
        framework="torch",
        expects="",
        on=(0, 1, 3),
        late={2: 40.0},
        says=r"3 of 4 ready, waiting \d+ s for (rank 2: not joined yet|worker 2: \w+)",
        arguments=("--steps", "20"),
        options=("--timeout", "90"),
        exit_codes=(0,),
        long="40 s of waiting",
    ),
}
