"""What Open MPI's mpirun (and its prterun) writes: the first process that failed, or why it started none.

MPICH names no rank.
"""

from __future__ import annotations

import re
import signal

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Exit, Glimpse, Testimony

_SIGNAL = re.compile(
    r"noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,9}) on node (?P<host>\S{1,255})"
    r"\s+exited on\s+signal (?P<signal>\d{1,2})\b"
)
_CODE = re.compile(
    r"The first process to do so was:\s+Process name: \[[^\n]{1,200},(?P<rank>\d{1,7})\]\s+"
    r"Exit code: +(?P<code>\d{1,3})"
)
_OPEN_MPI = "its wording from the source of Open MPI 2 to 5 (orte and prrte, help texts)"
_VALID_SIGNALS = {int(s) for s in signal.Signals}
MESSAGES = (
    KnownMessage(
        key="not enough slots available",
        pattern=r"not enough slots available in the system to satisfy the (?P<many>\d+)\s*slots",
        rule="JOIN001",
        says="mpirun has fewer slots than the {many} processes that were asked for; none was started",
        fix="mpirun -np {many} -H HOST:N,...   # N slots a host, which is 1 without :N; or slots=N in the "
        "hostfile; in a batch job ask for {many} tasks; --oversubscribe only to try it out",
        certainty=Certainty.CERTAIN,
        sample="There are not enough slots available in the system to satisfy the 16\nslots that were "
        "requested by "
        "the application:",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="already filled",
        pattern=r"All nodes which are allocated for this job are already filled",
        rule="JOIN001",
        says="mpirun has fewer slots than processes that were asked for; none was started",
        fix="mpirun -np N -H HOST:N,...   # N slots a host, which is 1 without :N; or slots=N in the "
        "hostfile",
        certainty=Certainty.CERTAIN,
        sample="All nodes which are allocated for this job are already filled.",
        source=_OPEN_MPI,
    ),
    KnownMessage(
        key="as it could not find an executable",
        pattern=r"as it could not find an executable:\s+Executable: (?P<what>\S{1,255})\s+Node: "
        r"(?P<node>\S{1,255})",
        rule="JOIN001",
        says="mpirun could not start {what} on {node}: it is not there",
        fix="ssh {node} which {what}   # install it there under the same path, or give mpirun its full path",
        certainty=Certainty.CERTAIN,
        sample="mpirun was unable to launch the specified application as it could not find an executable:\n\n"
        "Executable: python3\nNode: node-b\n",
        source=_OPEN_MPI,
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    glimpses: list[Glimpse] = []
    for match in _SIGNAL.finditer(text):
        if int(match["signal"]) in _VALID_SIGNALS:
            line = " ".join(match[0].split())
            end = Exit(ended_at=0.0, signal=int(match["signal"]), last_line=line)
            glimpses.append(
                Glimpse(
                    origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
                    rank=int(match["rank"]),
                    pid=int(match["pid"]),
                    host=match["host"],
                    exit=end,
                )
            )
    # A traceback that names no rank is of this process: its exit code tells nothing more.
    if "Traceback (most recent call last)" not in text:
        for match in _CODE.finditer(text):
            place = exhibit.place_of_line(text.count("\n", 0, match.start()))
            end = Exit(ended_at=0.0, code=int(match["code"]))
            glimpses.append(Glimpse(origin=place, rank=int(match["rank"]), exit=end))
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard, glimpses=tuple(glimpses[:1000])) if heard or glimpses else None


READER = LogReader(read=read_log)
