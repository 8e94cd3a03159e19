"""Names, addresses, firewalls, proxies and strangers between the hosts at the start."""

from __future__ import annotations

import sys
import time

from multihost_drills.contract import MEETING_PORT, HostDrill
from testbed import Bed, ipv6
from testbed.firewall import Block


def swapped(bed: Bed) -> None:
    bed.name("h2", "h0", bed.addresses["h1"])
    bed.name("h2", "h1", bed.addresses["h0"])


OLD = f"""
import time
from torch.distributed import TCPStore
stores = [TCPStore("127.0.0.1", {MEETING_PORT}, 1, i == 0) for i in range(4)]
print("complete", flush=True)
time.sleep(600)
"""


def leave_one(bed: Bed) -> None:
    old = bed.start("h0", [sys.executable, "-c", OLD])
    for _ in range(300):
        if "complete" in old.text():
            return
        time.sleep(0.1)


def another(bed: Bed) -> None:
    bed.run("h2", "ip", "link", "add", "docker0", "type", "bridge")
    bed.run("h2", "ip", "address", "add", "172.17.0.1/16", "dev", "docker0")
    bed.run("h2", "ip", "link", "set", "docker0", "up")


MUTE = f"import socket, time; s = socket.create_server(('', {MEETING_PORT})); time.sleep(600)"

CHECK = f"""
import socket, time
for _ in range(100):
    try:
        with socket.create_connection(("h0", {MEETING_PORT}), 1) as s:
            s.sendall(b"GET /health HTTP/1.1\\r\\nHost: h0\\r\\n\\r\\n")
            s.recv(100)
    except OSError:
        pass
    time.sleep(0.3)
"""


def in_slurm(host: int, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a step of three nodes with one task each."""
    return environment | {
        "SLURM_JOB_ID": "4242",
        "SLURM_STEP_ID": "0",
        "SLURM_JOB_NODELIST": "h[0-2]",
        "SLURM_STEP_NODELIST": "h[0-2]",
        "SLURM_NNODES": "3",
        "SLURM_NTASKS": "3",
        "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_PROCID": str(host),
        "SLURM_NODEID": str(host),
        "SLURM_LOCALID": "0",
        "SLURMD_NODENAME": f"h{host}",
    }


DRILLS = {
    "data-silent": HostDrill(
        title=(
            "A firewall passes the first connections and drops later ones: the roll call's link "
            "trials succeed, and the framework's start hangs"
        ),
        framework="torch",
        expects="NET012",
        blames=(0, 2),
        # h2 tries two hosts, with 60 bytes each; what gloo opens comes after those.
        arrange=lambda bed: bed.block(
            "h2", Block(way="out", new=True, but=(MEETING_PORT,), after=150)
        ),
        hosts=3,
        within=12.0,
        bound=22.0,
        allowed=("JOIN004",),
    ),
    "elsewhere-tensorflow": HostDrill(
        title="Nothing is wrong: the agents meet at another port than TensorFlow's tasks",
        framework="tensorflow",
        hosts=3,
        expects="",
        arguments=("--steps", "20"),
        options=("--timeout", "30", "--coordinator", "h0:29400"),
        exit_codes=(0,),
    ),
    "hosts-file-swapped": HostDrill(
        title="On one host, /etc/hosts has swapped the names of two others",
        framework="torch",
        expects="NET017",
        hosts=3,
        blames=(2,),
        on=(2,),
        arrange=swapped,
        allowed=("JOIN001",),
    ),
    "net-data-ports-dropped": HostDrill(
        title="A firewall passes one host's packets to the meeting place and drops all others",
        framework="torch",
        expects="NET006",
        hosts=3,
        blames=(2,),
        arrange=lambda bed: bed.block("h2", Block(way="both", but=(MEETING_PORT,))),
    ),
    "net-dropped": HostDrill(
        title="A firewall drops one host's packets to the meeting place",
        framework="torch",
        expects="NET003",
        hosts=3,
        blames=(0, 2),
        on=(2,),
        arrange=lambda bed: bed.block("h2", Block(way="out", ports=(MEETING_PORT,))),
        within=14.0,
        allowed=("JOIN001",),
    ),
    "net-dropped-both": HostDrill(
        title="A firewall drops all packets from and to one host",
        framework="torch",
        expects="NET003",
        blames=(0, 2),
        on=(2,),
        arrange=lambda bed: bed.block("h2", Block(way="both")),
        within=14.0,
        allowed=("JOIN001",),
        long="net-dropped is the same for what is said",
    ),
    "net-dropped-both-jax": HostDrill(
        title="A firewall drops all packets between two hosts of a JAX job",
        framework="jax",
        expects="NET006",
        blames=(1, 3),
        arrange=lambda bed: bed.block("h3", Block(way="both", peer="h1")),
        long="one-way-needed-jax shows the link, net-data-ports-dropped both directions",
    ),
    "net-dropped-both-tensorflow": HostDrill(
        title="A firewall drops all packets between two TensorFlow workers",
        framework="tensorflow",
        expects="NET006",
        blames=(1, 3),
        arrange=lambda bed: bed.block("h3", Block(way="both", peer="h1")),
        long="one-way-tensorflow shows the link, net-data-ports-dropped both directions",
    ),
    "net-earlier-run": HostDrill(
        title=(
            "The store of an earlier run of the same job is still open, and all of its clients "
            "have joined"
        ),
        framework="torch",
        expects="JOIN008",
        hosts=3,
        blames=(1,),
        on=(1,),
        arrange=leave_one,
    ),
    "net-families-differ": HostDrill(
        title=(
            "All names resolve to IPv6 and IPv4 on every host, and on one host IPv6 is off: gloo "
            "uses IPv4 there"
        ),
        framework="torch",
        expects="NET018",
        hosts=3,
        blames=(2,),
        arrange=lambda bed: ipv6.both(bed, without=("h2",)),
    ),
    "net-families-differ-jax": HostDrill(
        title=(
            "IPv6 is off on the first host of a JAX job: its gloo fails only in the first "
            "collective"
        ),
        framework="jax",
        expects="NET018",
        hosts=3,
        blames=(0,),
        arrange=lambda bed: ipv6.both(bed, without=("h0",)),
        exit_codes=(1,),
        within=8.0,
        allowed=("EXIT002",),  # of the others' own agents, once the first has ended
    ),
    "first-task-absent": HostDrill(
        title=(
            "The first worker of a TF_CONFIG never starts: the others meet without it, and say together "
            "that it is missing"
        ),
        framework="tensorflow",
        expects="JOIN001",
        hosts=3,
        blames=(0,),
        absent=(0,),
        within=14.0,
        says=r"2 of 3 ready, waiting \d+ s for worker 0 \(h0:29500\): not started yet",
    ),
    "first-host-absent": HostDrill(
        title=(
            "The first host of a Slurm job never starts: the others know each other from the list of nodes, "
            "meet without it, and say together that rank 0 is missing"
        ),
        framework="torch",
        expects="JOIN001",
        hosts=3,
        blames=(0,),
        absent=(0,),
        environment=in_slurm,
        within=14.0,
        says=r"2 of 3 ready, waiting \d+ s for rank 0 \(h0:29500\): not started yet",
    ),
    "first-host-late": HostDrill(
        title="Nothing is wrong: the first host of a Slurm job starts long after the others have met",
        framework="torch",
        expects="",
        hosts=3,
        late={0: 9.0},
        environment=in_slurm,
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "first-task-late": HostDrill(
        title="Nothing is wrong: the first worker of a TF_CONFIG starts long after the others have met",
        framework="tensorflow",
        expects="",
        hosts=3,
        late={0: 9.0},
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "first-task-blocked": HostDrill(
        title="A firewall keeps one task of a TF_CONFIG from the first one, which all others reach",
        framework="tensorflow",
        expects="NET003",
        hosts=3,
        blames=(0, 1),
        on=(1,),
        arrange=lambda bed: bed.block("h1", Block(way="out", peer="h0", ports=(MEETING_PORT,))),
        within=16.0,
        allowed=("JOIN001", "NET006"),
    ),
    "net-first-absent": HostDrill(
        title=(
            "The leader's host never starts its worker: it is shown as a status within seconds, "
            "and as a finding after the timeout"
        ),
        framework="torch",
        expects="NET002",
        blames=(0,),
        on=(1,),
        absent=(0,),
        within=12.0,
        says=(
            r"waiting [4-9] s for rank 0 \(h0:29500\): not started yet \(its host is up and refuses the "
            r"connection"
        ),
    ),
    "net-idle-interface": HostDrill(
        title="One host is configured to use an interface that exists but reaches no other host",
        framework="torch",
        expects="NET006",
        blames=(2,),
        arrange=another,
        environment=lambda host, env: (
            env | ({"GLOO_SOCKET_IFNAME": "docker0"} if host == 2 else {})
        ),
        arguments=("--steps", "20"),
        exit_codes=(0,),
    ),
    "net-interface-in-script": HostDrill(
        title="The script chooses gloo's interface, and one host has none of that name",
        framework="torch",
        expects="NET010",
        blames=(2,),
        environment=lambda host, env: env | {"INTERFACE": "ib7" if host == 2 else "eth0"},
        scripts=dict.fromkeys(range(4), "torch_interface.py"),
    ),
    "net-leader-no-secret": HostDrill(
        title="The leader's host has no secret, the others have one",
        framework="torch",
        expects="NET011",
        hosts=2,
        on=(0,),
        environment=lambda host, told: {**told, "ALLABOARD_SECRET": "of the job"} if host else told,
        within=8.0,
        says=r"h1 \(rank 1\), which has a job secret, but the leader was given none",
        allowed=("JOIN001", "NET015"),
    ),
    "net-mtu": HostDrill(
        title="Packets of more than 1000 bytes are lost on the way to and from one host",
        framework="torch",
        expects="NET007",
        hosts=3,
        blames=(2,),
        arrange=lambda bed: bed.block("h2", Block(way="in", larger=1000)),
        within=8.0,
    ),
    "net-no-name": HostDrill(
        title="One host cannot resolve the name of the first",
        framework="torch",
        expects="NET001",
        hosts=3,
        blames=(0, 2),
        on=(2,),
        arrange=lambda bed: bed.name("h2", "h0", None),
        allowed=("JOIN001",),
    ),
    "net-no-name-of-server": HostDrill(
        title="The host of a parameter server cannot resolve the name of the first host",
        framework="tensorflow",
        expects="NET001",
        blames=(0, 3),
        on=(3,),
        roles=("worker", "worker", "ps", "ps"),
        arrange=lambda bed: bed.name("h3", "h0", None),
        ends=False,
        within=20.0,
        allowed=("JOIN001", "NET002", "PS003"),
        long="net-no-name shows the same of a worker",
    ),
    "net-one-way": HostDrill(
        title="One host accepts no new connections from another; the other direction works",
        framework="torch",
        expects="NET006",
        blames=(1, 3),
        arrange=lambda bed: bed.block("h3", Block(peer="h1", but=(MEETING_PORT,), new=True)),
        ends=False,
    ),
    "net-other-job": HostDrill(
        title="One host's launcher says that its worker belongs to another job",
        framework="torch",
        expects="JOIN009",
        hosts=3,
        blames=(2,),
        on=(2,),
        environment=lambda host, env: env | {"ALLABOARD_JOB_ID": "41" if host == 2 else "42"},
        allowed=("JOIN001",),
    ),
    "net-other-script": HostDrill(
        title="One host runs another script",
        framework="torch",
        expects="ENV007",
        hosts=3,
        blames=(2,),
        scripts={2: "torch_ddp_older.py"},
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "net-other-secret": HostDrill(
        title="One host has another secret than the others",
        framework="torch",
        expects="NET015",
        hosts=3,
        blames=(2,),
        on=(2,),
        environment=lambda host, told: {**told, "ALLABOARD_SECRET": f"of host {host == 2}"},
        within=8.0,
        allowed=("JOIN001", "NET011"),
    ),
    "net-own-name-loopback": HostDrill(
        title="One host's own name resolves to 127.0.1.1 on itself, as Debian's installer writes it",
        framework="torch",
        expects="NET009",
        hosts=3,
        blames=(2,),
        arrange=lambda bed: bed.name("h2", "h2", "127.0.1.1"),
    ),
    "net-rejected": HostDrill(
        title=(
            "A firewall rejects one host's packets to the meeting place, as if nothing listened "
            "there"
        ),
        framework="torch",
        expects="NET002",
        blames=(0,),  # host 2 cannot know better; its advice names the firewall
        on=(2,),
        arrange=lambda bed: bed.block(
            "h0", Block(verdict="reset", peer="h2", ports=(MEETING_PORT,))
        ),
        within=14.0,
        allowed=("JOIN001",),
    ),
    "net-silent-listener": HostDrill(
        title=(
            "A program that accepts connections and never answers has the port of the meeting place"
        ),
        framework="torch",
        expects="NET005",
        blames=(0,),
        on=(0,),
        arrange=lambda bed: bed.start("h0", [sys.executable, "-c", MUTE]),
        within=10.0,
    ),
    "net-slow-link": HostDrill(
        title="One host has a link of 8 Mbit/s, the others a gigabit or more",
        framework="torch",
        expects="NET008",
        hosts=3,
        blames=(2,),
        arrange=lambda bed: bed.narrow("h2", 8),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "net-stranger": HostDrill(
        title="A health check keeps connecting to the meeting place while one host is late",
        framework="torch",
        expects="NET011",
        on=(0,),
        late={3: 8.0},
        arrange=lambda bed: bed.start("h2", [sys.executable, "-c", CHECK]),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        within=9.0,
    ),
    "net-unreachable": HostDrill(
        title="A firewall answers that there is no route from one host to the meeting place",
        framework="torch",
        expects="NET004",
        hosts=3,
        blames=(0, 2),
        on=(2,),
        arrange=lambda bed: bed.block(
            "h0", Block(verdict="unreachable", peer="h2", ports=(MEETING_PORT,))
        ),
        within=14.0,
        allowed=("JOIN001",),
    ),
    "net-variables": HostDrill(
        title="A variable that the framework reads is set on one host only",
        framework="torch",
        expects="ENV008",
        hosts=3,
        blames=(2,),
        environment=lambda host, env: env | ({"NCCL_IB_DISABLE": "1"} if host == 2 else {}),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "net-web-server": HostDrill(
        title="A web server has the port of the meeting place",
        framework="torch",
        expects="NET005",
        hosts=3,
        blames=(1,),
        on=(1,),
        arrange=lambda bed: bed.start(
            "h0", [sys.executable, "-m", "http.server", str(MEETING_PORT)]
        ),
        within=7.0,
    ),
    "net-wrong-interface": HostDrill(
        title="One host is configured to use an interface that it does not have",
        framework="torch",
        expects="NET010",
        hosts=3,
        blames=(2,),
        environment=lambda host, env: env | ({"GLOO_SOCKET_IFNAME": "ib7"} if host == 2 else {}),
    ),
    "proxy-grpc": HostDrill(
        title="A web proxy is set on one host, and gRPC connects through it",
        framework="tensorflow",
        expects="ENV008",
        blames=(2,),
        allowed=("JOIN004", "EXIT005"),
        ends=False,
        environment=lambda host, env: (
            env | ({"http_proxy": "http://10.77.9.9:3128"} if host == 2 else {})
        ),
        long="TensorFlow hangs until it is ended",
    ),
    "proxy-set": HostDrill(
        title="Every host has a web proxy without exceptions; PyTorch ignores it",
        framework="torch",
        expects="",
        environment=lambda host, env: (
            env | {"http_proxy": "http://10.77.9.9:3128", "https_proxy": "http://10.77.9.9:3128"}
        ),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="a healthy start",
    ),
}
