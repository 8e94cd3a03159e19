"""Known log messages of frameworks and what they mean: how a table of them is searched in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec

from allaboard.analysis.alike_messages import join_alike
from allaboard.facts import Certainty, Claim, Evidence, Exhibit, Heard, Severity, Speaker, Who
from allaboard.facts.rank_sets import name_ranks, with_listed_ranks

MAX_HITS = 1000
"""Places of one message that are read in one exhibit; a retry loop may write a message a million times."""
MAX_WORDINGS = 32
"""Different wordings of one message that are kept from one exhibit."""
SHOWN_CHARS_BEFORE, SHOWN_CHARS_AFTER = 40, 200
"""Characters shown before and after the start of a message."""
MAX_MESSAGE_CHARS = 1200
"""Characters from the start of a line within which a message of several lines must end."""
_TORCH_RANK_PREFIX = re.compile(r"\s*(?:\x1b\[[0-9;]*m)?\[rank\s?(\d{1,7})\]:?")
"""Prefix that torch itself writes: the rank in the whole job."""
_COMM_RANK = re.compile(r"\[TC\]\[rank=(\d{1,7})\]|\([^()\n]{0,60}\bRankID:(\d{1,7})\)")
"""Rank in the lines of torchcomms, of PyTorch's backend nccl2, which is from it, and of torch_npu."""
_RANK_LABEL = re.compile(
    r"(?:\x1b\[[0-9;]*m)?\[(?:rank|default|worker)?\s?\d{1,7}\]:?(?:\x1b\[0m)? ?"
)
"""Label of a rank in front of a line, whoever wrote it."""
_NODE_RANK_PREFIX = re.compile(r"\s*(?:\x1b\[[0-9;]*m)?\[(?:default|worker)?\s?(\d{1,7})\]:?")
_NCCL_GROUP_RANK = re.compile(r"\[Rank (\d+)\]")
"""Number within a group in NCCL's messages; it is the rank only in the default group."""
_WRITER_HOST = re.compile(
    r"(?:^|[\s:>])(?P<host>[A-Za-z0-9][\w.-]{1,100}):\d{1,9}:\d{1,9} \[\d{1,5}\] "
    r"|\[\d{6,12}\.\d{1,9}\] \[(?P<host2>[A-Za-z0-9][\w.-]{1,100}):\d{1,9}:\d{1,5}\] "
)
"""Host, process and thread that wrote a line, as NCCL and UCX name them."""
_UNNAMED_HOSTS = ("on the host that wrote it", "on that host")
"""Words of a next step for the host of a line's writer."""
_LOST = "a process lost "
"""Begins what it says of a writer that is a victim."""
_SPACE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<[=!](?:\\.|[^)\\])*\)|(?P<space> )(?![?*+{])", re.DOTALL
)
"""A space of a regular expression that is in no class, and in no look behind, whose width is fixed."""
_BROKEN = re.compile(r"\s*\n\s*")
"""Where somebody has broken what a group of a message holds."""
_NAMES_GROUP = "names"
"""The group of a message that lists names of tasks, one a line."""
_A_PROCESS = "a process "
"""Begins what a message says of its writer, whose rank its table does not know."""


@dataclass(frozen=True, kw_only=True)
class KnownMessage:
    """One known message."""

    key: str
    """Text that is always in the message; it is searched first because that is fast."""
    pattern: str
    """Regular expression of the whole message; it must start in the line of ``key``. The group ``rank``, or
    ``job`` with ``task``, names whom the message is about."""
    rule: str
    """Code of the rule that the message fires."""
    says: str
    """What the message means, with the pattern's groups by name in braces."""
    fix: str
    """What to do next, with groups likewise."""
    proves_not: str = ""
    """What the message does not prove, if it misleads; else ""."""
    awaits: bool = False
    """True if its writer waited for others, so that ranks that do not write it are the ones waited for."""
    severity: Severity = Severity.ERROR
    """Severity of the claim."""
    certainty: Certainty = Certainty.LIKELY
    """Certainty of the claim."""
    explains: tuple[str, ...] = ()
    """Rules whose messages follow from it; they are dropped."""
    only_explains: bool = False
    """True if it is harmless alone: it counts only beside a message of a rule that it ``explains``."""
    ended_wait: bool = False
    """True if it reports a limit that ends any job: what the job waited for then is the cause."""
    bare_end: bool = False
    """True if it reports only that a process ended, not why. The group ``pid`` is the process."""
    sample: str
    """Lines in which the message must be found, as they were written."""
    source: str
    """Source of the sample: the versions that it was recorded with, or the document."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern, in which a space stands for the end of a line, too: people break long
        messages where they paste them."""
        return re.compile(_SPACE.sub(_any_space, self.pattern), re.DOTALL)


def _any_space(match: re.Match[str]) -> str:
    return r"\s{1,40}" if match["space"] else match[0]


def find_known_messages(exhibit: Exhibit, messages: Iterable[KnownMessage]) -> tuple[Heard, ...]:
    """Return every message of the table that is in this exhibit, each wording and speaker once."""
    text = exhibit.text
    heard_by_identity: dict[tuple[str, str, int], Heard] = {}
    for message in messages:
        wordings = 0
        for start, match in _find_matches(text, message):
            heard_message = _make_heard(exhibit, text, start, match, message)
            identity = (heard_message.rule, heard_message.says, heard_message.speakers[0].rank)
            if identity in heard_by_identity:
                continue
            heard_by_identity[identity] = heard_message
            wordings += 1
            if wordings == MAX_WORDINGS:
                break
    return tuple(heard_by_identity.values())


def _find_matches(text: str, message: KnownMessage) -> Iterator[tuple[int, re.Match[str]]]:
    position, searched_to = text.find(message.key), 0
    for _ in range(MAX_HITS):
        if position < 0:
            return
        start = text.rfind("\n", 0, position) + 1
        start = max(start, position - MAX_MESSAGE_CHARS)  # a line without an end
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        # The search is bounded, so that a pattern cannot run through a log of gigabytes.
        search_from = max(start, searched_to)
        match = message.compiled.search(text, search_from, position + MAX_MESSAGE_CHARS)
        searched_to = end
        if match is not None and match.start() < end:
            yield start, match
            # Where processes write into one another, a line may have the same of several ranks.
            if "rank" in match.groupdict() and match.end() > position:
                searched_to = min(end, match.end())
        position = text.find(message.key, searched_to)


def _make_heard(
    exhibit: Exhibit, text: str, start: int, match: re.Match[str], message: KnownMessage
) -> Heard:
    end = text.find("\n", match.start())
    line = text[start : len(text) if end < 0 else end].strip()
    shown = _shown_text(text, start, match)
    location = exhibit.place_of_line(text.count("\n", 0, start))
    groups = {
        k: v or "" if k == _NAMES_GROUP else _BROKEN.sub(" ", v or "")
        for k, v in match.groupdict().items()
    }
    return Heard(
        rule=message.rule,
        says=with_listed_ranks(message.says.format(**groups)),
        speakers=(Speaker(speaker_rank(line, exhibit.rank), shown, location, exhibit.pid),),
        fix=with_writer_host(with_listed_ranks(message.fix.format(**groups)), line),
        about=_members_about(groups),
        awaits=message.awaits,
        proves_not=message.proves_not.format(**groups),
        size=int(groups["size"]) if groups.get("size", "").isdecimal() else 0,
        severity=message.severity,
        certainty=message.certainty,
        explains=message.explains,
        only_explains=message.only_explains,
        ended_wait=message.ended_wait,
        bare_end=message.bare_end,
        pid=int(groups.get("pid") or 0) if message.bare_end else 0,
    )


def _shown_text(text: str, start: int, match: re.Match[str]) -> str:
    """Return the message with a little of the text before it, its lines joined."""
    begin = start
    if match.start() - start > SHOWN_CHARS_BEFORE:
        begin = (
            text.find(" ", match.start() - SHOWN_CHARS_BEFORE, match.start()) + 1 or match.start()
        )
    end = text.find("\n", match.end())
    end = min(len(text) if end < 0 else end, match.start() + SHOWN_CHARS_AFTER)
    return ("... " if begin > start else "") + " ".join(text[begin:end].split())


def strip_rank_label(line: str) -> str:
    """Return the line without the label of a rank (``[rank1]:``, ``[default1]:``, ``[1]``) before it."""
    label = _RANK_LABEL.match(line)
    return line[label.end() :] if label is not None else line


def speaker_rank(line: str, otherwise: int) -> int:
    """Return the rank that wrote a line, or -1.

    It is the one in torch's own prefix (``[rank1]:``), else ``otherwise``, the rank of the file or of a
    launcher's prefix. If neither is known, it is the number within a node (``[default1]:``, ``[1]``) or
    within NCCL's group (``[Rank 1]``), which are ranks in most jobs.
    """
    match = _TORCH_RANK_PREFIX.match(line) or _COMM_RANK.search(line)
    # A number within a node or a group may differ from the rank, so it counts only as a last resort.
    if match is None and otherwise < 0:
        match = _NODE_RANK_PREFIX.match(line) or _NCCL_GROUP_RANK.search(line)
    return int(match[match.lastindex or 1]) if match is not None else otherwise


def with_writer_host(fix: str, line: str) -> str:
    """Return the next step with the name of the host that wrote the line, if its own prefix tells it."""
    match = _WRITER_HOST.search(line[:300])
    if match is None:
        return fix
    words = next((w for w in _UNNAMED_HOSTS if w in fix), "")
    return fix.replace(words, f"on {match['host'] or match['host2']}", 1) if words else fix


def _members_about(groups: dict[str, str]) -> tuple[Who, ...]:
    if groups.get("task", "").isdecimal():
        return (Who(job=groups.get("job") or "worker", index=int(groups["task"])),)
    ranks = [int(r) for r in re.findall(r"\d+", groups.get("rank", ""))][:64]
    return tuple(Who(index=r, rank=r) for r in ranks)


def merge_heard(heard: Iterable[Heard], logs: Iterable[int]) -> tuple[Heard, ...]:
    """Return each message once, with all its writers; ``logs`` are the ranks whose logs were read."""
    merged: dict[tuple[str, str], Heard] = {}
    known_ranks = {r for r in logs if r >= 0}
    for message in heard:
        merged_before = merged.get((message.rule, message.says))
        if merged_before is None:
            merged[(message.rule, message.says)] = message
            continue
        # The first who wrote it is where to look first.
        speakers = merged_before.speakers + message.speakers
        merged[(message.rule, message.says)] = msgspec.structs.replace(
            message, speakers=speakers, fix=merged_before.fix
        )
    # Each rank may report its wait with another message; a rank that reports none is waited for.
    waiting = {s.rank for h in merged.values() if h.awaits for s in h.speakers}
    silent = tuple(sorted(known_ranks - waiting)) if waiting <= known_ranks else ()
    complete = (_with_speakers(h, h.speakers, silent if h.awaits else ()) for h in merged.values())
    return join_alike(complete)


def _with_speakers(
    message: Heard, speakers: tuple[Speaker, ...], silent: tuple[int, ...] = ()
) -> Heard:
    return msgspec.structs.replace(message, speakers=speakers, silent=silent)


def known_message_check(code: str) -> Callable[[Heard], Iterator[Claim]]:
    """Return the check of a rule that reports one known message."""

    def check(message: Heard) -> Iterator[Claim]:
        """Yield the claim about a message of this rule."""
        if message.rule == code:
            yield known_message_claim(message)

    return check


def known_message_claim(heard: Heard) -> Claim:
    """Return the message as a claim: what it means, who wrote it where, and what it does not prove."""
    ranks = sorted({s.rank for s in heard.speakers if s.rank >= 0})
    affected = heard.about or tuple(Who(index=r, rank=r) for r in heard.silent)
    summary = heard.says
    is_victim = heard.awaits or summary.startswith(_LOST)
    if not affected and len(ranks) == 1 and summary.startswith(_A_PROCESS) and not is_victim:
        affected = (Who(index=ranks[0], rank=ranks[0]),)
        summary = f"rank {ranks[0]} {summary.removeprefix(_A_PROCESS)}"
    elif not affected and not ranks and summary.startswith(_A_PROCESS) and not is_victim:
        pids = {s.pid for s in heard.speakers}
        if len(pids) == 1 and (pid := pids.pop()):
            summary = f"pid {pid} {summary.removeprefix(_A_PROCESS)}"
    evidence = [Evidence(s.line, str(s.place)) for s in heard.speakers[:1]]
    if len(ranks) > 1 or (ranks and not heard.about):
        evidence.append(Evidence(f"written by {name_ranks(ranks)}", "logs"))
    if heard.silent:
        verb = "they wait" if len(heard.silent) > 1 else "it waits"
        evidence.append(
            Evidence(f"{name_ranks(heard.silent)} did not report that {verb}", "its log")
        )
    if heard.proves_not:
        evidence.append(Evidence(heard.proves_not, "what this does not prove"))
    return Claim(
        summary=summary,
        who=affected,
        evidence=tuple(evidence),
        fix=heard.fix,
        severity=heard.severity,
        certainty=heard.certainty,
    )
