"""Listings of sockets (`ss -tnp`, `netstat -tnp`) in which a process of the training waits for an answer.

The columns are those of iproute2 4 to 6 and of net-tools 1.60 to 2.10.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Severity, Testimony

_SAYS = "{name} waits for {address} to take its connection, and gets no answer (SYN-SENT)"
_FIX = (
    "from this host: nc -vz {host} {port}; on {host}: ss -ltn | grep {port}   # the host is down, or a "
    "firewall drops it (port {port} and those above 1024 must be open between the hosts)"
)


def _message(key: str, pattern: str, sample: str, source: str) -> KnownMessage:
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="NET006",
        says=_SAYS,
        fix=_FIX,
        severity=Severity.WARNING,
        proves_not="that it stays so: one listing is one instant",
        sample=sample,
        source=source,
    )


_REMOTE = r"(?P<address>\[?(?P<host>[\w.:%-]+?)\]?:(?P<port>\d{1,5}))"
_PROGRAM = r"(?P<name>python[\w.]*|pt_main_thread|torchrun)"
MESSAGES = (
    _message(
        "SYN-SENT",
        rf"SYN-SENT +\d+ +\d+ +\S+:\d+ +{_REMOTE} +users:\(\(\"{_PROGRAM}\",pid=(?P<pid>\d{{1,9}})",
        'SYN-SENT 0      1      10.0.0.12:44120    10.0.0.11:29500 users:(("python",pid=4101,fd=9))',
        "its form from the source of iproute2 (misc/ss.c)",
    ),
    _message(
        "SYN_SENT",
        rf" {_REMOTE} +SYN_SENT +(?P<pid>\d{{1,9}})/{_PROGRAM}",
        "tcp        0      1 10.0.0.12:44120         10.0.0.11:29500         SYN_SENT    4101/python",
        "its form from the source of net-tools (netstat.c)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
