"""What MPI libraries write if they cannot start in a process, or if a process aborts the job.

Open MPI and PMIx write blocks of help between two lines of dashes; MPICH and Intel MPI write a stack of
errors, of which the last line says most.
"""

from __future__ import annotations

import re

from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_messages import find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.mpi_start_messages import MESSAGES, NO_FABRIC, UNREACHED_PMI
from allaboard.diagnosis.wordings.open_mpi_messages import MPI_ABORT
from allaboard.facts import Exhibit, Heard, Speaker, Testimony
from allaboard.facts.rank_sets import name_ranks

_FATAL = re.compile(
    r"(?:Abort\(\d+\)(?:(?: on node \d+)? \(rank (?P<rank>\d{1,7}) in comm \d+\))?: |^)Fatal error in "
    r"(?P<call>"
    r"P?MPI_\w+|internal_\w+): (?P<what>[^\n]*)(?P<stack>(?:\n[\w()]+\(\d*\)\.*: ?[^\n]*)*)",
    re.MULTILINE,
)
_HELP = re.compile(
    r"^-{40,}\n(?P<text>It looks like (?P<what>[\w ]{2,40}?)(?: runtime init)? failed for some "
    r"reason;.{0,900}?)\n-{40,}$",
    re.MULTILINE | re.DOTALL,
)
_HELP_REASON = re.compile(r"\n\s*\n(?P<reason>  \S[^\n]{3,120}(?:\n  -->[^\n]{1,160})?)\s*$")
_FATAL_FIX = (
    "read the log of that rank; does the network fail? fi_info; export FI_PROVIDER=tcp I_MPI_FABRICS=shm:ofi "
    "for one run; on Slingshot (cxi) FI_CXI_RX_MATCH_MODE=software; is one host in all such messages?"
)
_REFUSES = re.compile(
    r"\b(?:invalid|must|null|negative|truncated|out of range|different processes|is not (?:a|committed|valid)"
    r"|not (?:supported|implemented|initialized)|already called|datatype|aliased|mismatch\w*)\b",
    re.IGNORECASE,
)
_OF_NETWORK = re.compile(
    r"\b(?:OFI|UCX|fi_|ofi_|ucp?_|socket|connect|network|channel|endpoint)", re.IGNORECASE
)
_REFUSED_FIX = (
    "MPI refuses the arguments of {call}: compare on that rank, and on those that it talks to, the "
    "communicator, ranks, counts, types and buffers of the call   # mpi4py: comm.Get_rank(), buf.nbytes, "
    "buf.dtype"
)
_ABORT_FIX = (
    "read what that rank wrote before: who calls MPI_Abort mostly prints why (an uncaught exception, for "
    "example)"
)
_HELP_FIX = (
    "read the blocks of help before it; were all processes started by this MPI's own launcher? mpirun "
    "--version"
)
UNEXPLAINED_END = "LOG012"
"""The rule that quotes how a process ended."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = (
        find_known_messages(exhibit, MESSAGES)
        or find_known_messages(exhibit, (UNREACHED_PMI, NO_FABRIC))
        or _aborts(exhibit)
    )
    return Testimony(heard=heard) if heard else None


def _aborts(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return how MPI ended a process, if it is not known why: which rank said what last."""
    text = exhibit.text
    if match := _FATAL.search(text):
        last_line = [x for x in match["stack"].split("\n") if x.strip()][-1:] or [match["what"]]
        why = last_line[0].partition(": ")[2].strip() or match["what"].strip()
        stops = [m for m in _FATAL.finditer(text) if m["call"] == match["call"] and m["rank"]]
        subject = name_ranks({int(m["rank"]) for m in stops}) if stops else "a process"
        says = f"{subject} ended in {match['call']}: {why[:160]}"
        rank = int(match["rank"] or -1)
        return (_heard(exhibit, match, says, _fatal_fix(match["call"], why), rank),)
    if match := MPI_ABORT.search(text):
        says = f"rank {match['rank']} ended the whole job by MPI_Abort (exit code {match['code']})"
        return (_heard(exhibit, match, says, _ABORT_FIX, int(match["rank"])),)
    if match := _HELP.search(text):
        reason = _HELP_REASON.search(match["text"])
        reason_text = " ".join(reason["reason"].split()) if reason else "it does not say why"
        says = f"{match['what']} failed: {reason_text[:160]}"
        return (_heard(exhibit, match, says, _HELP_FIX, -1),)
    return ()


def _fatal_fix(call: str, why: str) -> str:
    """Return what to do about a call of MPI that failed on a rank for this reason."""
    if _REFUSES.search(why) and not _OF_NETWORK.search(why):
        return _REFUSED_FIX.format(call=call)
    return "; ".join(filter(None, [advice_by_words(why), _FATAL_FIX]))


def _heard(exhibit: Exhibit, match: re.Match[str], says: str, fix: str, rank: int) -> Heard:
    place = exhibit.place_of_line(exhibit.text.count("\n", 0, match.start()))
    line = " ".join(match[0].split())[:300]
    return Heard(
        rule=UNEXPLAINED_END,
        says=says,
        speakers=(Speaker(rank, line, place, exhibit.pid),),
        fix=fix,
    )


READER = LogReader(read=read_log)
