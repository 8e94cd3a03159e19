"""What launchers write if they cannot start on a host, or if a process that they started ended.

The launchers are torch.distributed.launch, accelerate, DeepSpeed, horovodrun, Open MPI's mpirun, and the MPI
operator, which starts Open MPI's daemons by `kubectl exec`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.analysis.failures.launcher_errors import is_launcher_child_error
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Place, Speaker, Testimony
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD, Traceback, find_tracebacks

_GAVE_UP = (
    r"(?=.{0,900}(?:could not connect to some hosts via ssh|ssh exited with exit code 255|was unable to "
    r"reliably start one or more daemons|unexpectedly failed after launch|not reachable via ssh|"
    r"lost communication with a remote daemon))"
)
"""Words of a launcher that needed the connection: a script may also use ssh for something else."""
_TASK_FAILED = r"(?P<task_failed>(?<=task function was not successful:\n))?"
"""horovodrun's words before what ssh wrote, once its own check of ssh had passed."""
_OPEN_MPI = "its wording from the source of Open MPI 2 to 5 (orte and prrte, help texts)"
_CHILD_SIGNAL = re.compile(r"died with <Signals\.(SIG[A-Z0-9]+): \d+>")
_CHILD_STATUS = re.compile(r"returned non-zero exit status (-?\d+)")
_ENDED_AFTER_EXCEPTION = re.compile(r"non-zero exit status|<Signals\.(?:SIGABRT|SIGTERM):")
_CHILD_SSH = re.compile(
    r"[\['\"]ssh (?:-\S+ (?:\w+=\S+ |\d+ )?)*(?P<host>[\w.@-]{1,255}) .{0,200}returned non-zero exit "
    r"status 255"
)
"""ssh ends with 255 if it could not connect, else with the status of the command."""
_ABORT_REASON = re.compile(
    r"^[^\n]{0,200}(?:: F |\bF\d{4,8} )[^\n]{0,160}Check failed: |pthread_create"
    r"|instance of 'gloo::IoException'"
    r"|Terminating process because the JAX|Watchdog caught collective operation timeout",
    re.MULTILINE,
)
"""What other readers hear of why a process aborted: the signal says less."""
MAX_SHOWN_HOSTS = 8
"""Hosts that are named of those about which a launcher wrote the same."""
_LOCAL_RANK = re.compile(r"--local[_-]rank[= ',]{1,4}(\d{1,5})")
_SCRIPT = re.compile(r"[\w./~+-]{1,300}\.(?:py|sh)\b")
_SIGNAL_FIX = {
    "SIGKILL": "on its host: dmesg -T | grep -i 'killed process'; then ask the batch system who ended it",
    "SIGTERM": "ask who ended it: the batch system, a time limit, or a person",
}
_CRASH_FIX = "PYTHONFAULTHANDLER=1 shows the line that it was at; ulimit -c unlimited leaves a core"


def _killed_container(code: int, signal: str) -> tuple[KnownMessage, ...]:
    """Return the messages of `kubectl exec` about a container that a signal ended."""
    key = f"command terminated with exit code {code}"
    pod = r"Remote daemon *: \[\[\d+,\d+\],\d+\] on node "
    return (
        KnownMessage(
            key=key,
            pattern=rf"{key}\b(?=.{{0,900}}{pod}(?P<node>\S{{1,255}}))",
            rule="EXIT001",
            says=f"the pod {{node}} is gone: its container was killed (exit code {code} is {signal})",
            fix="kubectl describe pod {node}   # OOMKilled, Evicted or Preempted? kubectl get events "
            "--field-selector involvedObject.name={node}",
            certainty=Certainty.CERTAIN,
            sample=f"{key}\n-----\nORTE has lost communication with a remote daemon.\n\n  HNP daemon   : "
            "[[100,0],0] on node job-launcher\n  Remote daemon: [[100,0],2] on node job-worker-1\n",
            source="its wording from the sources of kubectl and Open MPI 3 to 5",
        ),
        KnownMessage(
            key=key,
            pattern=rf"{key}\b(?!.{{0,900}}Remote daemon *: \[)",
            rule="EXIT001",
            says=f"the container of a worker was killed (exit code {code} is {signal})",
            fix="kubectl get pods   # which one is not Running, or was restarted? kubectl describe pod POD "
            "tells OOMKilled, Evicted or Preempted",
            proves_not="which pod it was",
            sample=f"+ POD_NAME=job-worker-1\n{key}",
            source="its wording from the source of kubectl (exec)",
        ),
    )


LOST_DAEMON = KnownMessage(
    key="lost communication with a remote daemon",
    pattern=r"lost communication with a remote daemon.{0,200}?Remote daemon *: \[\S{1,80}\] on node "
    r"(?P<node>\S{1,255})",
    rule="EXIT010",
    says="mpirun lost its daemon on {node}: the host or pod, or the link to it, is gone",
    fix="ssh {node} uptime   # a pod: kubectl describe pod {node}; then its kernel's log: dmesg -T | tail",
    proves_not="whether {node} ended or the link to it broke",
    sample="ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[100,0],0] on node "
    "head\n  Remote daemon: [[100,0],2] on node node-b\n",
    source=_OPEN_MPI,
)
"""It says less than the end of the container, which kubectl reports."""
NO_DAEMON = KnownMessage(
    key=" daemon",
    pattern=r"(?:was unable to reliably start one or more daemons|daemon has unexpectedly failed after "
    r"launch)",
    rule="JOIN001",
    says="mpirun could not start its daemon on a host; no rank was started",
    fix="for host in $(cut -d' ' -f1 HOSTFILE); do ssh -o BatchMode=yes $host which orted prted; done   # "
    "the same Open MPI must be on all hosts, in PATH also without a login: --prefix",
    proves_not="which host, nor whether ssh, PATH or the network is at fault",
    sample="An ORTE daemon has unexpectedly failed after launch and before\ncommunicating back to mpirun.",
    source=_OPEN_MPI,
)
"""It says less than what ssh wrote before."""
DAEMON_FAILED = KnownMessage(
    key="_ERROR_LOG: ",
    pattern=r"\[(?P<node>[\w.-]{1,255}):\d+\] \[\[\d+,0\],[1-9]\d*\] (?:ORTE|PRTE)_ERROR_LOG: "
    r"(?P<why>[^\n]{1,60}?) in file\s+(?P<file>\S{1,120}) at line.{0,900}?"
    r"(?:unable to reliably start|daemon has unexpectedly failed|bind\(\) failed)",
    rule="JOIN001",
    says="mpirun's daemon on {node} failed as it started ({why} in {file}); no rank was started there",
    fix="ssh {node} 'df -h /tmp; ls -ld /tmp $TMPDIR; ls -d /tmp/ompi.* /tmp/openmpi-sessions-*'   # "
    "full, not writable, or left from another run? A short TMPDIR (export TMPDIR=/tmp) for its sockets; "
    "and the same Open MPI as here: ssh {node} which orted prted",
    proves_not="that only this host fails: each daemon has its own /tmp",
    explains=("EXIT003", "LOG012"),
    sample="[node-b:17722] [[61742,0],1] ORTE_ERROR_LOG: Error in file orted/pmix/pmix_server.c at line 254\n"
    "ORTE was unable to reliably start one or more daemons.",
    source=_OPEN_MPI,
)
"""The daemon that has a number is one of another host: it says which."""
_COLOSSAL = KnownMessage(
    key="is localhost: False, exception: ",
    pattern=r"Error: failed to run (?P<command>\S{1,200})[^\n]{0,2000}? on (?P<host>[\w.:-]{1,255}), is "
    r"localhost: "
    r"False, exception: (?P<why>[^\n]{3,200})",
    rule="JOIN001",
    says="colossalai run could not start {command} on {host} by ssh: {why}; those that it started wait for "
    "it",
    fix="ssh -o BatchMode=yes {host} hostname   # without a password? Its ssh (paramiko) reads ~/.ssh by "
    "itself: "
    "ssh-copy-id {host}, a key that it can read (ssh-keygen -t rsa -m PEM), a known host; else torchrun on "
    "each "
    "host with --node-rank",
    certainty=Certainty.CERTAIN,
    explains=("LOG012", "EXIT003", "EXIT002"),
    sample="Error: failed to run torchrun --nproc_per_node=2 --nnodes=2 --node_rank=1 "
    "--master_addr=192.0.2.11 "
    "--master_port=29508 train.py on 192.0.2.12, is localhost: False, exception: No authentication methods "
    "available",
    source="its wording from the source of ColossalAI 0.2 to 0.4 (cli/launcher/multinode_runner.py)",
)
MESSAGES = (
    _COLOSSAL,
    KnownMessage(
        key="not reachable via ssh",
        pattern=r"host=(?P<host>[^\s,]{1,255}) was not reachable via ssh",
        rule="JOIN001",
        says="DeepSpeed's launcher cannot reach {host} by ssh without a password; no rank was started",
        fix="ssh -o BatchMode=yes {host} hostname   # as the same user; if it asks for anything: "
        "ssh-copy-id {host}",
        certainty=Certainty.CERTAIN,
        sample="RuntimeError: Using hostfile at /job/hostfile but host=node-b was not reachable via ssh. If "
        "you are running with a single node please remove /job/hostfile or setup passwordless ssh.",
        source="its wording from the source of DeepSpeed 0.7 to 0.18 (launcher/runner.py)",
    ),
    KnownMessage(
        key="ssh: connect to host",
        pattern=_TASK_FAILED
        + r"ssh: connect to host (?P<host>\S{1,255}) port (?P<port>\d+): (?P<why>[A-Z][\w ]{1,60})"
        + rf"(?(task_failed)|{_GAVE_UP})",
        rule="JOIN001",
        says="nobody answers the launcher's ssh on port {port} of {host}: {why}; no rank was started",
        fix="nc -vz {host} {port}   # does sshd run there, and on this port? Compare the launcher's -p, "
        "--ssh-port or plm_rsh_args",
        certainty=Certainty.CERTAIN,
        sample="ssh not successful for host node-b:\nssh: connect to host node-b port 12345: Connection "
        "refused\n\nRuntimeError: could not connect to some hosts via ssh",
        source="its wording from the sources of OpenSSH and of Horovod 0.21 to 0.28 (runner/launch.py)",
    ),
    KnownMessage(
        key="ssh: Could not resolve hostname",
        pattern=r"ssh: Could not resolve hostname (?P<host>[^\s:]{1,255}):(?P<slots>\d{1,3}): "
        + _GAVE_UP,
        rule="JOIN001",
        says="this mpirun takes {host}:{slots} for a host's name: it does not know the form HOST:SLOTS, and "
        "hands it to ssh",
        fix="mpirun --version   # Open MPI before 1.10, or another MPI: give -H {host},{host},... once a "
        "process, or a hostfile with `{host} slots={slots}` (Open MPI), `{host}:{slots}` (MPICH, Intel MPI)",
        certainty=Certainty.CERTAIN,
        sample="ssh: Could not resolve hostname localhost:4: Name or service not known\nORTE was unable to "
        "reliably start one or more daemons.",
        source="its wording from the source of OpenSSH",
    ),
    KnownMessage(
        key="ssh: Could not resolve hostname",
        pattern=r"ssh: Could not resolve hostname (?P<host>(?P<own>[\w-]{1,63})(?:\.[\w.-]{1,190})?): "
        r"[^\n\r]{1,80}(?=.{0,1100}?\bmy node: +(?P=own)\b)",
        rule="JOIN001",
        says="a host of the job cannot resolve {host}, the name of the launcher itself, to which its daemons "
        "connect back; no rank was started",
        fix="getent hosts {host}   # on the other hosts: no output means no such name there. Kubernetes: "
        "kubectl get svc,endpoints; the launcher's pod needs the hostname and subdomain of a headless "
        "Service "
        "with publishNotReadyAddresses; else /etc/hosts on all hosts, or mpirun --mca oob_tcp_if_include "
        "NAME",
        certainty=Certainty.CERTAIN,
        sample="ssh: Could not resolve hostname job-launcher-0.job: Name or service not known\nORTE does not "
        "know how to route a message to the specified daemon\nlocated on the indicated node:\n\n  my node:   "
        "job-launcher-0\n  target node:  job-node-0.job",
        source="its wording from the sources of OpenSSH and Open MPI 3 to 4.1 (help-errmgr-base.txt)",
    ),
    KnownMessage(
        key="ssh: Could not resolve hostname",
        pattern=r"ssh: Could not resolve hostname (?P<host>(?P<own>[^\s:.]{1,255})(?=[.:])[^\s:]{0,255}): "
        r"(?P<why>[^\n\r]{1,80})(?!.{0,1100}?\bmy node: +(?P=own)\b)" + _GAVE_UP,
        rule="JOIN001",
        says="the launcher's ssh cannot resolve the name {host}; no rank was started",
        fix="getent hosts {host}   # on the host of the launcher; then correct the hostfile, the name "
        "service or /etc/hosts",
        certainty=Certainty.CERTAIN,
        sample="ssh: Could not resolve hostname node-b: Name or service not known\npdsh@head: node-b: ssh "
        "exited with exit code 255",
        source="its wording from the sources of OpenSSH and pdsh",
    ),
    KnownMessage(
        key="Permission denied (",
        pattern=r"(?<![\w.-])(?:(?P<user>[\w.-]{1,64})@)?(?P<host>[\w.-]{1,255}): Permission denied "
        r"\((?P<ways>[\w,-]{1,120})\)" + _GAVE_UP,
        rule="JOIN001",
        says="{host} refuses the launcher's ssh without a password; no rank was started there",
        fix="ssh -o BatchMode=yes {host} hostname   # as the same user; if it asks for anything: "
        "ssh-copy-id {host}",
        certainty=Certainty.CERTAIN,
        sample="node-b: ubuntu@node-b: Permission denied (publickey,password).\npdsh@head: node-b: ssh "
        "exited with exit code 255",
        source="its wording from the sources of OpenSSH and pdsh",
    ),
    KnownMessage(
        key="Host key verification failed",
        pattern=r"Host key verification failed" + _GAVE_UP,
        rule="JOIN001",
        says="the launcher's ssh does not know the key of a host; no rank was started there",
        fix="for host in $(cut -d' ' -f1 HOSTFILE); do ssh -o BatchMode=yes $host hostname; done   # for the "
        "one that fails: ssh-keyscan HOST >> ~/.ssh/known_hosts",
        sample="Host key verification failed.\r\nORTE was unable to reliably start one or more daemons.",
        source="its wording from the sources of OpenSSH and Open MPI",
    ),
    KnownMessage(
        key="ssh not successful for host",
        pattern=r"ssh not successful for host (?P<host>[^\s:]{1,255}):\s*\n(?!ssh: |Host key"
        r"|[^\n]*Permission denied)(?P<why>[^\n]{0,100})",
        rule="JOIN001",
        says="horovodrun cannot reach {host} by ssh; no rank was started",
        fix="ssh -o BatchMode=yes {host} hostname   # as the same user, with the same port",
        certainty=Certainty.CERTAIN,
        sample="ssh not successful for host node-b:\nConnection closed by 10.0.0.2 port 22\n",
        source="its wording from the source of Horovod 0.21 to 0.28 (runner/launch.py)",
    ),
    *_killed_container(137, "SIGKILL"),
    *_killed_container(139, "SIGSEGV"),
    *_killed_container(143, "SIGTERM"),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = (
        *(h for m in MESSAGES for h in _once_for_all_hosts(m, find_known_messages(exhibit, (m,)))),
        *_child_ends(exhibit),
    )
    heard = heard or find_known_messages(exhibit, (DAEMON_FAILED,))[:1]
    heard = heard or _daemon_ends(exhibit)
    return Testimony(heard=heard) if heard else None


def _daemon_ends(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return which daemon mpirun lost or could not start; a second try after a loss is no news."""
    lost_daemons = find_known_messages(exhibit, (LOST_DAEMON,))
    not_started = find_known_messages(exhibit, (NO_DAEMON,))
    if lost_daemons and not_started:
        lost_at, stopped_at = (h[0].speakers[0].place.line for h in (lost_daemons, not_started))
        if lost_at < stopped_at:
            return lost_daemons
    return (*lost_daemons, *not_started)


def _once_for_all_hosts(message: KnownMessage, heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Return one message for all hosts about which the launcher wrote the same."""
    if len(heard) < 2 or "{host}" not in message.says:
        return heard
    fields = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(message.says)))
    groups = [match.groupdict() for h in heard if (match := fields.fullmatch(h.says)) is not None]
    shared = {k: v for k, v in groups[0].items() if k != "host"} if groups else {}
    if len(groups) < len(heard) or any({**shared, "host": g["host"]} != g for g in groups):
        return heard
    hosts = [g["host"] for g in groups]
    shown = ", ".join(hosts[:MAX_SHOWN_HOSTS]) + (", ..." if len(hosts) > MAX_SHOWN_HOSTS else "")
    return (
        msgspec.structs.replace(
            heard[0],
            says=message.says.format(**shared, host=shown),
            speakers=tuple(s for h in heard for s in h.speakers),
        ),
    )


def _child_ends(exhibit: Exhibit) -> Iterator[Heard]:
    """Yield what launchers raised about their children: it names the child better than a rank is known."""
    text = exhibit.text
    if "CalledProcessError" not in text or TRACEBACK_HEAD not in text:
        return
    tracebacks = find_tracebacks([line.rstrip("\r") for line in text.split("\n")])
    reason_known = _ABORT_REASON.search(text) is not None
    others = [t for t in tracebacks if not is_launcher_child_error(t)]
    for traceback in tracebacks:
        if not is_launcher_child_error(traceback):
            continue
        heard = _child_end(exhibit.place_of_line(traceback.begin), traceback)
        # The traceback of the child says more than its exit code, or than an abort after it.
        if reason_known and "<Signals.SIGABRT:" in traceback.message:
            continue
        if heard is not None and not (others and _ENDED_AFTER_EXCEPTION.search(traceback.message)):
            yield heard


def _child_end(place: Place, traceback: Traceback) -> Heard | None:
    message = traceback.message
    local_rank, script = _LOCAL_RANK.search(message), _SCRIPT.search(message)
    child = f"the process of local rank {local_rank[1]}" if local_rank else "the process"
    child += f" ({script[0]})" if script else ""
    if ssh := _CHILD_SSH.search(message):
        return _unreachable_host(place, traceback, ssh["host"])
    killed, status = _CHILD_SIGNAL.search(message), _CHILD_STATUS.search(message)
    if killed is None and status is None:
        return None
    line = f"{traceback.type}: {' '.join(message.split())}"[:300]
    return Heard(
        rule="EXIT001" if killed else "EXIT003",
        says=f"{child} was killed by {killed[1]}"
        if killed
        else f"{child} ended with exit code {status[1] if status else ''}",
        speakers=(Speaker(-1, line, place),),
        fix=_SIGNAL_FIX.get(killed[1], _CRASH_FIX)
        if killed
        else f"read what it wrote before {place}, or its own log",
        proves_not="which rank it is on several hosts: the launcher counts on its own host"
        if local_rank
        else "which rank it was: the launcher does not say",
        certainty=Certainty.CERTAIN,
    )


def _unreachable_host(place: Place, traceback: Traceback, host: str) -> Heard:
    return Heard(
        rule="JOIN001",
        says=f"the launcher cannot reach {host} by ssh; no rank was started",
        speakers=(
            Speaker(-1, f"{traceback.type}: {' '.join(traceback.message.split())}"[:300], place),
        ),
        fix=f"ssh -o BatchMode=yes {host} hostname   # as the same user; if it asks for anything: "
        f"ssh-copy-id {host}",
        certainty=Certainty.CERTAIN,
    )


READER = LogReader(read=read_log)
