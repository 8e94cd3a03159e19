"""Ranks that PyTorch's debug server could not ask, as its pages and its files (``dump_dir``) say it.

Read with PyTorch 2.13 (torch/distributed/debug/_frontend.py, format_fetch_summary). The stacks in such a
file are read by `diagnosis.readers.faulthandler_dump`.
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Speaker, Testimony, Who

MAX_RANKS = 256
"""Ranks that are read of one exhibit."""
_HEAD = re.compile(r"^PARTIAL DATA: (?P<answered>\d+)/(?P<size>\d+) workers responded$", re.M)
_SILENT = re.compile(r"^  Rank (?P<rank>\d{1,7}): (?P<why>[^\n]{0,400})$", re.M)
_TIMEOUT = re.compile(r"time(?:d )?out", re.IGNORECASE)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heads = list(_HEAD.finditer(text))
    if not heads:
        return None
    head = heads[-1]  # a file may have several
    end = text.find("\n===", head.end())
    heard = []
    for match, _ in zip(
        _SILENT.finditer(text, head.end(), end if end >= 0 else len(text)),
        range(MAX_RANKS),
        strict=False,
    ):
        rank = int(match["rank"])
        place = exhibit.place_of_line(text.count("\n", 0, match.start()))
        heard.append(
            Heard(
                rule="DUMP011",
                says=_sentence(rank, match["why"]),
                speakers=(Speaker(-1, " ".join(match[0].split()), place),),
                fix=f"on the host of rank {rank}: ps -o pid,stat,etime,wchan,args -p PID (T is stopped); "
                "its log; allaboard diagnose PID",
                about=(Who(index=rank, rank=rank),),
                size=int(head["size"]),
                proves_not="that it is at fault: a rank that computes with the GIL held cannot answer either",
                certainty=Certainty.LIKELY,
            )
        )
    return Testimony(heard=tuple(heard)) if heard else None


def _sentence(rank: int, why: str) -> str:
    if _TIMEOUT.search(why):
        return (
            f"rank {rank} is there, and does not answer PyTorch's debug server: it may be stopped"
        )
    return f"rank {rank} cannot be reached by PyTorch's debug server: it has ended, or its host is away"


READER = LogReader(read=read_log)
