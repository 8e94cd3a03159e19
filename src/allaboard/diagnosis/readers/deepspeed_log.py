"""Messages of DeepSpeed's launcher about a process that a signal ended."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

MESSAGES = (
    KnownMessage(
        key="exits with return code = -",
        pattern=r"--local_rank=(?P<local>\d+)[^\n]{0,2000} exits with return code = -(?P<signal>\d{1,2})\b",
        rule="EXIT001",
        says="the process of local rank {local} was killed by signal {signal}",
        fix="signal 9: dmesg -T | grep -i kill, and the batch system; 7 and 11: native code crashed",
        proves_not="which rank: DeepSpeed tells the rank on its host",
        sample="[2026-01-02 03:04:05,200] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python3', '-u', "
        "'train.py', '--local_rank=1'] exits with return code = -9",
        source="its wording from the source of DeepSpeed (launcher/launch.py), not recorded",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
