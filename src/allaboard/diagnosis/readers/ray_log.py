"""Messages of Ray about workers that it lost or ended."""

from __future__ import annotations

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
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
