"""Messages of Ray about workers that it lost, ended or could not start."""

from __future__ import annotations

from allaboard.analysis.log_ends.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Testimony

_SOURCE = "its wording from Ray's source (raylet), not recorded"
_DIED = "The actor died unexpectedly before finishing this task."
_ACTOR = (
    r"The actor died unexpectedly before finishing this task\.\s+class_name: (?P<name>\S{1,200})"
    r".{0,600}?"
)
_AT = r"ip: (?P<host>[\w.:-]+)\s+"
_DETAIL = r"(?:[^\n]{0,200}Worker exit detail: (?P<detail>[^\n]{1,200}?\.)(?=\s|$))?"
_DEAD_FIX = "on {host}: dmesg -T | grep -iE 'killed process|oom'; ray logs raylet.out -ip {host}"
_NODE_FIX = (
    "ssh {host} uptime   # does it still run? ray status; ray logs raylet.out -ip {host}; its kernel's "
    "log: dmesg -T | tail"
)


def _actor_died(
    reason: str,
    rule: str,
    says: str,
    fix: str,
    sample: str,
    *,
    bare: bool = False,
    explains: tuple[str, ...] = (),
    proves_not: str = "by what: Ray sees only that its connection ended",
) -> KnownMessage:
    """Return what Ray's driver raises of an actor that is gone, for one ``reason``, a regular expression."""
    return KnownMessage(
        key=_DIED,
        pattern=_ACTOR + reason,
        rule=rule,
        says=says,
        fix=fix,
        proves_not=proves_not,
        bare_end=bare,
        explains=explains,
        sample=f"ray.exceptions.ActorDiedError: {_DIED}\n\tclass_name: Worker\n\tactor_id: f2"
        f"\n\tpid: 4351\n\tnamespace: 87\n\tip: 10.0.0.7\nThe actor is dead because {sample}",
        source="its wording from the source of Ray 2.0 to 2.50 (exceptions.py, gcs_actor_manager)",
    )


_DEATHS = (
    _actor_died(
        rf"pid: (?P<pid>\d+).{{0,300}}?{_AT}The actor is dead because its worker process has died\.{_DETAIL}",
        "EXIT001",
        "Ray's worker of pid {pid} on {host} died",
        _DEAD_FIX,
        "its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits.",
        bare=True,
    ),
    _actor_died(
        _AT + r"The actor (?:is dead|died) because its node has died"
        r"(?!.{0,200}?the actor's node was (?:preempted|terminated expectedly))",
        "EXIT010",
        "Ray lost its node {host}: it sent no sign of life any more",
        _NODE_FIX,
        "its node has died. Node Id: 56b97",
        explains=("EXIT001",),
    ),
    _actor_died(
        _AT + r"The actor (?:is dead|died) because its node has died.{0,200}?the actor's node was "
        r"(?P<why>preempted|terminated expectedly)(?:: (?P<detail>[^\n]{1,120}))?",
        "EXIT010",
        "Ray's node {host} was {why}, and the actor {name} on it ended with it ({detail})",
        "ray status   # is a node in its place? Start again from the last checkpoint: "
        "RunConfig(failure_config=FailureConfig(max_failures=3)) does it by itself; nodes that are not "
        "spot or "
        "preemptible for what must not end",
        "its node has died. Node Id: 56b97\n\tthe actor's node was preempted: the instance is reclaimed",
        explains=("EXIT001",),
        proves_not="",
    ),
    _actor_died(
        r".{0,200}?The actor is dead because its owner has died\.[^\n]{0,200}?Owner Ip address: "
        r"(?P<host>[\w.:-]+)[^\n]{0,200}?Owner's node has crashed",
        "EXIT010",
        "Ray lost its node {host}: it sent no sign of life any more",
        _NODE_FIX,
        "its owner has died. Owner Id: 01ff Owner Ip address: 10.0.0.8 Owner worker exit type: SYSTEM_ERROR "
        "Worker exit detail: Owner's node has crashed.",
        explains=("EXIT001",),
    ),
    _actor_died(
        r".{0,200}?The actor is dead because its owner has died\.[^\n]{0,200}?Owner Ip address: "
        r"(?P<host>[\w.:-]+)(?![^\n]{0,200}?Owner's node has crashed)",
        "EXIT001",
        "the process on {host} that had started Ray's actor {name} died, and Ray ended the actor",
        _DEAD_FIX,
        "its owner has died. Owner Id: 01ff Owner Ip address: 10.0.0.8 Owner worker exit type: SYSTEM_ERROR "
        "Worker exit detail: Owner's worker process has crashed.",
        bare=True,
    ),
    _actor_died(
        r".{0,300}?The actor (?:is dead because (?:it was killed by|all references)|was killed by)"
        r"[^\n]{0,20}?`?(?P<why>ray\.kill|ray stop|to the actor were removed)",
        "EXIT008",
        "Ray's actor {name} was ended from within the program or by a person ({why}) while a call to it ran",
        "grep -rn 'ray.kill\\|del ' SCRIPT   # who ends it, or lets go of its last reference, before the "
        "call is done? Else ask who ran ray stop",
        "it was killed by `ray.kill`.",
    ),
)
MESSAGES = (
    *_DEATHS,
    KnownMessage(
        key="killed due to memory pressure (OOM)",
        pattern=r"(?P<count>[1-9]\d*) Workers \(tasks / actors\) killed due to memory pressure \(OOM\)"
        r"[^\n]{0,200}?IP: (?P<host>[\w.:]+)\)",
        rule="RES001",
        says="Ray ended {count} workers on {host} because the host's memory ran out",
        fix="ray logs raylet.out -ip {host}; fewer workers on a host, or more memory for each",
        certainty=Certainty.CERTAIN,
        sample="(raylet, ip=10.0.0.7) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 "
        "Workers crashed due to other reasons at node (ID: 12, IP: 10.0.0.7) over the last time period.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="A worker died or was killed",
        pattern=r"A worker died or was killed while executing a task by an unexpected system error\."
        r"[^\n]{0,900}?Worker IP address: (?P<host>[\w.:]+)[^\n]{0,100}?Worker PID: (?P<pid>\d+)",
        rule="EXIT001",
        says="Ray's worker of pid {pid} on {host} died",
        fix="on {host}: dmesg -T | grep -iE 'killed process|oom'; ray logs raylet.out -ip {host}",
        proves_not="by what: Ray sees only that its connection ended",
        bare_end=True,
        sample="(raylet) A worker died or was killed while executing a task by an unexpected system "
        "error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: ff Worker ID: "
        "ab Node ID: 12 Worker IP address: 10.0.0.7 Worker port: 10012 Worker PID: 2211 Worker exit type: "
        "SYSTEM_ERROR",
        source=_SOURCE,
    ),
    KnownMessage(
        key="has been marked dead because the detector",
        pattern=r"The node with node id: (?P<node>\w+) and (?:ip|address): (?P<host>[\w.:-]+)"
        r"[^\n]{0,120}? has been marked dead because the detector has missed too many heartbeats",
        rule="EXIT010",
        says="Ray lost its node {host}: it sent no sign of life any more",
        fix=_NODE_FIX,
        proves_not="whether {host} ended, was shut down, or was too busy to answer",
        explains=("EXIT001",),
        sample="WARNING worker.py:1462 -- The node with node id: 8f205b and ip: 10.0.0.7 has been marked "
        "dead because the detector has missed too many heartbeats from it.",
        source="from reports of Ray 1.10 to 2.9",
    ),
    KnownMessage(
        key="The worker group startup timed out after",
        pattern=r"The worker group startup timed out after (?P<limit>[\d.]+) seconds waiting for "
        r"(?P<size>\d+) workers",
        rule="JOIN001",
        says="Ray could not start the {size} workers within {limit} s",
        fix="ray status   # are the resources of ScalingConfig there, and free? If nodes are still being "
        "added: export RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S=600",
        proves_not="that a worker failed: most often the CPUs or GPUs are not there or not free",
        sample="The worker group startup timed out after 30.0 seconds waiting for 8 workers. Potential "
        "causes include: (1) temporary insufficient cluster resources",
        source="from a report of Ray 2.50 (train/v2)",
    ),
)
SURVIVED = ("has been marked dead because the detector", "The worker group startup timed out after")
"""Keys of messages after which Ray may start the workers again: they count only if no training goes on."""
MIN_TRAINING_LINES = 3
"""Lines of a training that show that it goes on: a worker may write that of a step it had begun before."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    counted = [
        m
        for m in MESSAGES
        if m.key not in SURVIVED
        or not (exhibit.trained_after or trains_on_after(exhibit.text, m.key, MIN_TRAINING_LINES))
    ]
    heard = find_known_messages(exhibit, counted)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
