"""What DeepSpeed's launcher writes if one of the processes that it started on its host ends badly.

The command in that line is the last one that it started, whichever process ended: its local rank is no
culprit, but tells how many there were.
"""

from __future__ import annotations

import re
import signal

from allaboard.analysis.failures.signal_advice import signal_advice
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Speaker, Testimony
from allaboard.facts.signal_name import VALID_SIGNALS, signal_name

_END = re.compile(
    r"^(?=[^\n]*sigkill_handler\])[^\n]*(?P<command>\[[^\n]{1,4000}\]) exits with return code = "
    r"(?P<code>-?\d{1,3})\b",
    re.MULTILINE,
)
_LOCAL_RANK = re.compile(r"--local[-_]rank[= ',]{1,4}(\d{1,5})")
_READ = (
    "read what the processes wrote before this line; if they wrote nothing: deepspeed --enable_each_rank_log "
    "DIR, and allaboard diagnose DIR"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    match = _END.search(text) if "exits with return code = " in text else None
    if match is None or (code := int(match["code"])) == 0:
        return None
    local = _LOCAL_RANK.search(match["command"])
    count = int(local[1]) + 1 if local is not None else 0
    name = f"one of the {count} processes that DeepSpeed started on this host"
    name = "the process that DeepSpeed started on this host" if count == 1 else name
    name = "a process that DeepSpeed started" if count == 0 else name
    killed = -code if -code in VALID_SIGNALS else None
    place = exhibit.place_of_line(text.count("\n", 0, match.start()))
    heard = Heard(
        rule="EXIT001" if killed else "EXIT003",
        says=f"{name} was killed by {signal_name(killed)}"
        if killed
        else f"{name} ended with exit code {code}",
        speakers=(Speaker(-1, f"... exits with return code = {code}", place, exhibit.pid),),
        fix=signal_advice(killed) if killed and killed != signal.SIGABRT else _READ,
        proves_not="which one: the command that DeepSpeed prints is the last that it started, whichever ended"
        if count != 1
        else "",
        bare_end=True,
    )
    return Testimony(heard=(heard,))


READER = LogReader(read=read_log)
