"""Xid errors of NVIDIA's driver in the kernel's log: dmesg, journald, syslog.

Written from NVIDIA's documents and published logs (Xid Errors; wordings of drivers 390 to 620). Xid 31 and 43
were recorded with driver 580 on an H200.
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import GpuEvent, Hardware, normalise_bus

MAX_EVENTS = 2000
"""Events that are read of one exhibit: a broken link reports a thousand a minute."""
MAX_LINE = 300
"""Characters of a line that are kept."""
FALLEN_OFF = 79
"""Number of the Xid for a GPU that does not answer any more; some drivers write only the sentence."""
_BUS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?"
_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?(?P<bus>{_BUS})(?: GPU-I:\d+)?\): "
    r"(?P<number>\d{1,4})\b,?\s*(?P<words_after>[^\n]{0,400})"
)
_OFF_THE_BUS = re.compile(
    rf"NVRM: (?:The NVIDIA )?GPU (?:at PCI:)?(?P<bus>{_BUS}):? (?:GPU )?has fallen off the bus"
    rf"|NVRM: The NVIDIA GPU (?P<bus2>{_BUS})[ \t]*\n[^\n]{{0,200}}installed in this system has[ \t]*\n"
    r"[^\n]{0,200}fallen off the bus"
)
_PID = re.compile(r"\bpid=(?:'|\")?(\d{1,10})")
_NAME = re.compile(r"\bname=(?:'|\")?([^,'\"\n<]{1,64})")
_OWNER_WORDS = re.compile(r"\b(?:pid|name)=[^,\n]*,?\s*")
_HOST = re.compile(r"(?:^|\s)([A-Za-z0-9][\w.-]{0,62}) kernel: ")


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if "NVRM:" not in text:
        return None
    events = []
    number = counted_up_to = 0
    matches = [*_XID.finditer(text), *_OFF_THE_BUS.finditer(text)]
    for match in sorted(matches, key=re.Match.start)[:MAX_EVENTS]:
        number, counted_up_to = (
            number + text.count("\n", counted_up_to, match.start()),
            match.start(),
        )
        events.append(_event(exhibit, text, match, number))
    events = _without_repeated_sentence(events)
    return Testimony(hardware=Hardware(events=tuple(events))) if events else None


def _event(exhibit: Exhibit, text: str, match: re.Match[str], lines_before: int) -> GpuEvent:
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end() - 1)
    line = " ".join(text[start : len(text) if end < 0 else end].split())[:MAX_LINE]
    host = _HOST.search(text[start : match.start()])
    groups = match.groupdict()
    words_after = groups.get("words_after") or ""
    pid, name = _PID.search(words_after), _NAME.search(words_after)
    return GpuEvent(
        bus=normalise_bus(groups.get("bus") or groups.get("bus2") or ""),
        number=int(groups.get("number") or FALLEN_OFF),
        detail=_OWNER_WORDS.sub("", words_after).strip()[:200],
        pid=int(pid[1]) if pid is not None else 0,
        process=name[1].strip() if name is not None else "",
        host=exhibit.host or (host[1] if host is not None else ""),
        line=line,
        place=exhibit.place_of_line(lines_before),
    )


def _without_repeated_sentence(events: list[GpuEvent]) -> list[GpuEvent]:
    """Return the events without the sentence that a driver writes beside the Xid of the same thing."""
    numbered = {(e.host, e.bus) for e in events if e.number == FALLEN_OFF and "Xid" in e.line}
    return [
        e
        for e in events
        if e.number != FALLEN_OFF or "Xid" in e.line or (e.host, e.bus) not in numbered
    ]


READER = LogReader(read=read_log)
