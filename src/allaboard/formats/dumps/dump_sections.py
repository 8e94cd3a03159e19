"""Stack dumps of several processes in one text, each given to the process that its heading names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from allaboard.formats.dumps.dump_headings import named_process
from allaboard.formats.dumps.log_prefixes import NO_LABEL, Label
from allaboard.late_pattern import compile_late

MAX_LINES_ABOVE = 4
"""Lines above a dump among which its heading is looked for, blank ones not counted."""
_BEGIN = (
    r"Process \d{1,9}: |(?:Current thread|Thread) (?:0x[0-9A-Fa-f]+|\d+)(?: \(| ?:?$)"
    r"|Traceback for thread \d|Dumping threads for process |Timeout \(\d+:\d\d:\d\d|Stack dump for "
    r"|Traceback \(most recent call first\):|#0 {1,3}\S|\[Thread debugging using |# ?Thread ?(?:ID|:)"
)
"""Begins a dump of py-spy, faulthandler, pystack, `ray stack` or gdb, or one by the program itself."""
_BODY = r"\s|$|#\d{1,4} |Python v\d|Parent Process \d|File:? \"|Using host lib|0x[0-9a-f]{6,16} in "
"""Begins the other lines of a dump."""
_DUMP_BEGIN, _DUMP_BODY = compile_late(_BEGIN), compile_late(f"{_BEGIN}|{_BODY}")
_PASSED_OVER = re.compile(
    r"\s*$|```|~~~|</?(?:details|summary|pre|code|p|br)\b|\(gdb\)|Collecting "
    r"|Stack dump for |Dumping |Timeout \("
)
"""Begins lines that may stand between a heading and its dump."""


def label_dumps(labelled_lines: Sequence[tuple[Label, str]]) -> list[tuple[Label, str]]:
    """Return the lines, those of a dump with the process that its heading names if no prefix names one."""
    headings = {
        number: heading
        for number, (label, line) in enumerate(labelled_lines)
        if label == NO_LABEL
        and _DUMP_BEGIN.match(line)
        and (heading := _heading_above(labelled_lines, number)) is not None
    }
    return list(_label(labelled_lines, headings)) if headings else list(labelled_lines)


def _label(
    labelled_lines: Sequence[tuple[Label, str]], headings: Mapping[int, Label]
) -> Iterator[tuple[Label, str]]:
    section = NO_LABEL
    for number, (label, line) in enumerate(labelled_lines):
        if label != NO_LABEL:
            yield label, line
            continue
        section = headings.get(number, section if _DUMP_BODY.match(line) else NO_LABEL)
        yield section, line


def _heading_above(labelled_lines: Sequence[tuple[Label, str]], begin: int) -> Label | None:
    """Return the process that one of the lines above a dump names; None if those are of another dump."""
    looked_at = 0
    for label, line in reversed(labelled_lines[max(0, begin - 4 * MAX_LINES_ABOVE) : begin]):
        if not line.strip():
            continue
        looked_at += 1
        if label != NO_LABEL or looked_at > MAX_LINES_ABOVE:
            return None
        if (heading := named_process(line)) is not None:
            return heading
        if not _PASSED_OVER.match(line):
            return None
    return None
