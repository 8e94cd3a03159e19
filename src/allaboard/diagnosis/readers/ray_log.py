"""Messages of Ray about workers that it lost, ended or could not start."""

from __future__ import annotations

from allaboard.analysis.failures.post_traceback_output import trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Testimony

_SOURCE = "its wording from Ray's source (raylet), not recorded"
MESSAGES = (
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
        sample="(raylet) A worker died or was killed while executing a task by an unexpected system "
        "error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: ff Worker ID: "
        "ab Node ID: 12 Worker IP address: 10.0.0.7 Worker port: 10012 Worker PID: 2211 Worker exit type: "
        "SYSTEM_ERROR",
        source=_SOURCE,
    ),
    KnownMessage(
        key="has been marked dead because the detector",
        pattern=r"The node with node id: (?P<node>\w+) and (?:ip|address): (?P<host>[\w.:-]+)[^\n]{0,80}? "
        r"has been "
        r"marked dead because the detector has missed too many heartbeats",
        rule="EXIT010",
        says="Ray lost its node {host}: it sent no sign of life any more",
        fix="ssh {host} uptime   # does it still run? ray status; ray logs raylet.out -ip {host}; its "
        "kernel's log: dmesg -T | tail",
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
        if m.key not in SURVIVED or not trains_on_after(exhibit.text, m.key, MIN_TRAINING_LINES)
    ]
    heard = find_known_messages(exhibit, counted)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
