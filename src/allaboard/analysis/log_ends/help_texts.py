"""The help texts that Open MPI and PRRTE write between two rules of dashes. Pure.

All that they have to say about a failure stands in such a text: what was asked for, what was found, on which
host. Many are warnings, after which the job goes on (help-*.txt in the sources of Open MPI 1.4 to 5, and of
PRRTE 1 to 4).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from allaboard.analysis.log_ends.program_advice import program_advice
from allaboard.analysis.log_ends.stated_remedy import stated_remedy

MAX_LINES_TO_END = 400
"""Lines before the end of a log among which the text is looked for."""
MAX_TEXT_LINES = 60
"""Lines of the longest text."""
MAX_TEXT_CHARS = 2000
"""Characters of a text that are read."""
_RULE = re.compile(r"^(?:\[[\w,.: ]{1,60}\] ?)?-{70,80}$")
_REPORTS_FAILURE = re.compile(
    r"\b(?:fail\w*|errors?|unable|cannot|could not|can't|not (?:found|enough|correct|supported|available|able"
    r"|recogni[sz]ed|permitted|set|allowed|executable)|invalid|unrecogni[sz]ed|unsupported|missing|malformed"
    r"|refused|exceed\w*|conflict\w*|unexpected\w*|do(?:es)? not|must|lost|abort\w*|unknown"
    r"|too (?:many|few|small))\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\bwarning\b|\bcontinu\w+|falling back|\bignor\w+|\bdisabl\w+|\bdegrad\w+|\bperformance\b|\bdeprecated\b"
    r"|\bwill not be used\b|\bunused\b|\bmay (?:hang|fail|crash|not)\b",
    re.IGNORECASE,
)
"""Words of a text after which the job goes on."""
_ENDS = re.compile(
    r"\babort|terminat|cannot continue|unable to (?:proceed|continue)|(?:not|n't) (?:able to )?(?:proceed"
    r"|continue)"
    r"|\bfatal\b|exiting",
    re.IGNORECASE,
)
"""Words of one that ends the job, whatever else it says."""
_HOST = re.compile(
    r"^(?:[Ll]ocal |[Rr]emote )?(?:[Hh]ost(?:name)?|[Nn]ode(?: name)?): +(?P<host>[A-Za-z][\w.-]{0,252})$"
)
"""The host that a line of a text names."""
_CHECK_CALL = (
    "correct what it names where it is set: the options of mpirun, the hostfile, or the environment (env | "
    "grep -E 'OMPI_|PRTE_|PMIX_'; cat ~/.openmpi/mca-params.conf)   # the same MPI on every host: mpirun "
    "--version"
)


class HelpText(NamedTuple):
    """One help text of a log."""

    text: str
    """Its sentences, with the lines joined."""
    first_line: int
    """Index of the first line between the rules."""
    last_line: int
    """Index of the rule below it."""
    host: str
    """The host that it names; "" if it names none."""


def final_help_text(lines: Sequence[str]) -> HelpText | None:
    """Return the first help text near the end of a log that reports a failure, and not only a warning."""
    begin = max(0, len(lines) - MAX_LINES_TO_END)
    rules = [n for n in range(begin, len(lines)) if _RULE.match(lines[n].strip())]
    number = 0
    while number + 1 < len(rules):
        upper_rule, lower_rule = rules[number], rules[number + 1]
        body = [line.strip() for line in lines[upper_rule + 1 : lower_rule]]
        if not any(body) or len(body) > MAX_TEXT_LINES:
            number += 1  # two texts, one below the other, or output between them
            continue
        if reports_failure(text := " ".join(" ".join(body).split())[:MAX_TEXT_CHARS]):
            filled = next(n for n, line in enumerate(body) if line)
            host = next((m["host"] for m in map(_HOST.match, body) if m is not None), "")
            return HelpText(text, upper_rule + 1 + filled, lower_rule, host)
        number += 2
    return None


def reports_failure(text: str) -> bool:
    """Return True for a help text of something that failed, after which the job does not go on."""
    return bool(_REPORTS_FAILURE.search(text)) and bool(
        _ENDS.search(text) or not _GOES_ON.search(text)
    )


def help_text_advice(help_text: HelpText) -> str:
    """Return what to do about a help text: what it says itself, and where to look."""
    of_program = program_advice(help_text.text)
    stated = stated_remedy(help_text.text)
    remedy = f"do what it says: {stated!r}; else " if stated else ""
    named_host = f"look at {help_text.host}, which it names; " if help_text.host else ""
    return f"{remedy}{named_host}{of_program or _CHECK_CALL}"
