"""Communicators of NCCL whose start a rank has begun, and not ended when its log ends.

Under NCCL_DEBUG=INFO each rank writes a line when it enters the start of a communicator, and one when it
leaves it. In between it waits for all ranks of the communicator. Recorded with NCCL 2.28.9 (init.cc).
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Speaker, Testimony

STARTS_NCCL = "waits in the start of an NCCL communicator of "
"""Stands in the sentence on a rank whose log ends there."""
_BEGUN = re.compile(
    r"^[^\n]* NCCL INFO (?P<call>ncclCommInit\w*|ncclCommSplit\w*) comm (?P<comm>0x[0-9a-f]+)"
    r" rank (?P<rank>\d+) nranks (?P<size>\d+) [^\n]*- Init START",
    re.MULTILINE,
)
_FAILED = re.compile(
    r" NCCL WARN | NCCL INFO [\w./-]+:\d+ -> [1-9]|Traceback \(most recent call last\)"
)
"""What NCCL or Python writes once the start has failed."""
_INFO = " NCCL INFO "


def read_log(exhibit: Exhibit) -> Testimony | None:
    starts = list(_BEGUN.finditer(exhibit.text)) if "- Init START" in exhibit.text else []
    if not starts:
        return None
    start, text = starts[-1], exhibit.text
    later_text = text[start.end() :]
    ended = f"comm {start['comm']} rank {start['rank']} nranks {start['size']} "
    is_over = any(ended in line and "Init COMPLETE" in line for line in later_text.split("\n"))
    goes_on = any(line.strip() and _INFO not in line for line in later_text.split("\n"))
    if is_over or goes_on or int(start["size"]) < 2 or _FAILED.search(later_text):
        return None
    rank = exhibit.rank if exhibit.rank >= 0 else int(start["rank"])
    speaker = Speaker(
        rank,
        start[0].strip()[:300],
        exhibit.place_of_line(text.count("\n", 0, start.start())),
        exhibit.pid,
    )
    return Testimony(
        heard=(
            Heard(
                rule="LOG014",
                says=f"a rank {STARTS_NCCL}{start['size']} ranks, and its log ends there",
                speakers=(speaker,),
                fix="see which of the ranks has not come to its first collective: its log, or, while the job "
                "hangs, py-spy dump --pid PID on each rank",
                awaits=True,
                proves_not="that it hangs: the log of a job that has just begun, or one that was "
                "cut, ends so too",
            ),
        )
    )


READER = LogReader(read=read_log)
