"""Messages of NCCL: its WARN lines, and INFO lines under NCCL_DEBUG=INFO."""

from __future__ import annotations

import re

from allaboard.analysis.log_ends.stated_remedy import stated_remedy
from allaboard.analysis.log_messages import find_known_messages, speaker_rank
from allaboard.analysis.network.nccl_loopback import as_loopback
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.nccl_host_messages import HOST_MESSAGES, SHM_FULL
from allaboard.diagnosis.wordings.nccl_network_messages import (
    DEBUG_FIX,
    FIRST_USE_DOUBT,
    NETWORK_MESSAGES,
)
from allaboard.diagnosis.wordings.nccl_start_messages import START_MESSAGES
from allaboard.facts import Exhibit, Heard, Speaker, Testimony

_LOOPBACK = "NET009"
MESSAGES = (*START_MESSAGES, *NETWORK_MESSAGES, *HOST_MESSAGES)
_WARNING = re.compile(
    r"^(?P<line>[^\n]*? NCCL WARN (?P<what>[^\n]{4,300}))\n(?=[^\n]* NCCL INFO [\w./-]+:\d+ -> [1-9])",
    re.MULTILINE,
)
"""Matches a warning that made NCCL fail: it then writes each place that the error passes (`init.cc:10 -> "
"3`)."""
_OWN_PEER = re.compile(
    r"^[ \t]*(?:\[[^\]\n]{1,40}\]\S{0,40}[ \t]?)?(?P<host>[\w-]{1,64})"
    r"(?:\.[\w.-]{0,200})?:\d+:\d+ \[\d+\] [^\n]{0,80}NCCL WARN [^\n]{0,60}onnection closed by remote "
    r"peer (?P<peer>(?P=host)\b[\w.:-]*)<",
    re.MULTILINE,
)
"""Matches a connection to a thread of NCCL on the writer's own host."""
_REFUSES = re.compile(
    r"\b(?:must|should (?:not )?be|needs? to|invalid|not initialized|not supported|unsupported"
    r"|cannot (?:be|use)|exceeds?|mismatch\w*|null)\b",
    re.IGNORECASE,
)
"""Words of a check of what NCCL was given."""
_REFUSED_FIX = (
    "compare on all ranks what the call was given that the traceback names (counts, types, devices, streams, "
    "groups), and NCCL_* in the environment; torch.cuda.nccl.version(): is it the NCCL that it was built for?"
)
MAX_SHOWN_WARNING = 160
"""Characters of an unknown warning that are shown."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if any(
        h.says == SHM_FULL.says for h in heard
    ):  # the proof of what the next message leaves open
        heard = tuple(h for h in heard if h.rule != SHM_FULL.rule or h.says == SHM_FULL.says)
    heard = tuple(as_loopback(h, exhibit.text, _LOOPBACK) for h in heard)
    heard = _without_own_proxies(heard, exhibit.text) or _unknown_warning(exhibit)
    return Testimony(heard=heard) if heard else None


def _without_own_proxies(heard: tuple[Heard, ...], text: str) -> tuple[Heard, ...]:
    """Return the messages without connections to NCCL's threads on the writer's own host, if others say more.

    If a thread fails that serves the GPUs of a host, the ranks there lose the connection to it, too.
    """
    own_peers = {f"a peer at {m['peer']} went away" for m in _OWN_PEER.finditer(text)}
    foreign = tuple(
        h for h in heard if not any(h.says.startswith(text_begin) for text_begin in own_peers)
    )
    return foreign or heard


def _unknown_warning(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the first warning after which NCCL failed, if no message of the table says more."""
    match = _WARNING.search(exhibit.text) if " NCCL WARN " in exhibit.text else None
    if match is None:
        return ()
    place = exhibit.place_of_line(exhibit.text.count("\n", 0, match.start()))
    line = match["line"].strip()
    return (
        Heard(
            rule="LOG010",
            says=f"NCCL failed: {match['what'].strip()[:MAX_SHOWN_WARNING]}",
            speakers=(Speaker(speaker_rank(line, exhibit.rank), line[:300], place, exhibit.pid),),
            fix=_fix_of_warning(match["what"]),
            proves_not=FIRST_USE_DOUBT,
        ),
    )


def _fix_of_warning(what: str) -> str:
    """Return what to do about a warning of which only the words are known."""
    if stated := stated_remedy(what):
        return f"do what it says: {stated!r}; if that does not help, {DEBUG_FIX}"
    return _REFUSED_FIX if _REFUSES.search(what) else DEBUG_FIX


READER = LogReader(read=read_log)
