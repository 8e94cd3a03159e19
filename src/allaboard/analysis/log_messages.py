"""Known messages of others, and what they mean: how a table of them is heard in a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec

from allaboard.facts import (
    Certainty,
    Claim,
    Evidence,
    Exhibit,
    Heard,
    Severity,
    Speaker,
    Who,
)

HITS = 1000
"""Places of one message that are read in one exhibit; a retry loop may write it a million times."""
WORDINGS = 32
"""Different wordings of one message that are kept of one exhibit."""
BEFORE, AFTER = 40, 200
"""Characters before and after a message's beginning that are shown."""
FOLLOWS = 1200
"""Characters from a line's beginning in which a message of several lines must end."""
_OWN = re.compile(r"\s*(?:\x1b\[[0-9;]*m)?\[rank\s?(\d{1,7})\]:?")
"""What torch itself begins a line with: the rank in the whole job."""
_PREFIX = re.compile(r"\s*(?:\x1b\[[0-9;]*m)?\[(?:default|worker)?\s?(\d{1,7})\]:?")
_NCCL = re.compile(r"\[Rank (\d+)\]")
"""A number within a group, which is the rank in the default group alone."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One known message.

    Attributes:
        key: letters that are always in it, looked for first because that is quick.
        pattern: the whole, as a regular expression; it must begin in the line of ``key``. The group
            ``rank``, and ``job`` with ``task``, name whom the message is about.
        rule: the code of the rule that it means.
        says: the sentence, with the pattern's groups by name in braces.
        fix: what to do next, likewise.
        proves_not: what it does not prove, where it misleads.
        awaits: whether its speaker waited for others, so that those who do not say it are awaited.
        sample: lines in which it must be heard, as they were written.
        source: where the sample is from: the versions it was recorded with, or the document.
    """

    key: str
    pattern: str
    rule: str
    says: str
    fix: str
    proves_not: str = ""
    awaits: bool = False
    severity: Severity = Severity.ERROR
    certainty: Certainty = Certainty.LIKELY
    sample: str
    source: str

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.DOTALL)


def hear(exhibit: Exhibit, messages: Iterable[Message]) -> tuple[Heard, ...]:
    """Every message of the table that is in this exhibit, each wording and speaker once."""
    text = exhibit.text
    found: dict[tuple[str, str, int], Heard] = {}
    for message in messages:
        known = 0
        for start, match in _matches(text, message):
            heard = _heard(exhibit, text, start, match, message)
            identity = (heard.rule, heard.says, heard.speakers[0].rank)
            if identity in found:
                continue
            found[identity] = heard
            known += 1
            if known == WORDINGS:
                break
    return tuple(found.values())


def _matches(text: str, message: Message) -> Iterator[tuple[int, re.Match[str]]]:
    at = text.find(message.key)
    for _ in range(HITS):
        if at < 0:
            return
        start = text.rfind("\n", 0, at) + 1
        start = max(start, at - FOLLOWS)  # a line without an end
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        match = message.compiled.search(text, start, start + FOLLOWS + (at - start))
        if match is not None and match.start() < end:
            yield start, match
        at = text.find(message.key, end)


def _heard(
    exhibit: Exhibit, text: str, start: int, match: re.Match[str], message: Message
) -> Heard:
    end = text.find("\n", match.start())
    line = text[start : len(text) if end < 0 else end].strip()
    shown = _shown(text, start, match)
    place = exhibit.place(text.count("\n", 0, start))
    groups = {k: v or "" for k, v in match.groupdict().items()}
    return Heard(
        rule=message.rule,
        says=message.says.format(**groups),
        speakers=(Speaker(speaker(line, exhibit.rank), shown, place),),
        fix=message.fix.format(**groups),
        about=_about(groups),
        awaits=message.awaits,
        proves_not=message.proves_not.format(**groups),
        size=int(groups["size"]) if groups.get("size", "").isdigit() else 0,
        severity=message.severity,
        certainty=message.certainty,
    )


def _shown(text: str, start: int, match: re.Match[str]) -> str:
    """The message with a little of its line before it; joined where it has several lines."""
    begin = start
    if match.start() - start > BEFORE:
        begin = text.find(" ", match.start() - BEFORE, match.start()) + 1 or match.start()
    end = text.find("\n", match.end())
    end = min(len(text) if end < 0 else end, match.start() + AFTER)
    return ("... " if begin > start else "") + " ".join(text[begin:end].split())


def speaker(line: str, otherwise: int) -> int:
    """Whose line it is: as torch's own prefix tells (``[rank1]:``), else ``otherwise``, the rank of the file
    or of a launcher's prefix; where neither is known, the numbers of a node (``[default1]:``, ``[1]``) and of
    NCCL's group (``[Rank 1]``), which are ranks in most jobs."""
    found = _OWN.match(line)
    if found is None and otherwise < 0:
        found = _PREFIX.match(line) or _NCCL.search(line)
    return int(found[1]) if found is not None else otherwise


def _about(groups: dict[str, str]) -> tuple[Who, ...]:
    if groups.get("task", "").isdigit():
        return (Who(job=groups.get("job") or "worker", index=int(groups["task"])),)
    ranks = [int(r) for r in re.findall(r"\d+", groups.get("rank", ""))][:64]
    return tuple(Who(index=r, rank=r) for r in ranks)


def together(heard: Iterable[Heard], logs: Iterable[int]) -> tuple[Heard, ...]:
    """One of each message, with all who wrote it; ``logs`` are the ranks whose logs were read."""
    merged: dict[tuple[str, str], Heard] = {}
    known = {r for r in logs if r >= 0}
    for one in heard:
        before = merged.get((one.rule, one.says))
        speakers = one.speakers if before is None else before.speakers + one.speakers
        merged[(one.rule, one.says)] = _with(one, speakers)
    # Each rank may word its wait otherwise; who waits in none of these ways is awaited.
    waiting = {s.rank for h in merged.values() if h.awaits for s in h.speakers}
    silent = tuple(sorted(known - waiting)) if waiting <= known else ()
    return tuple(_with(h, h.speakers, silent if h.awaits else ()) for h in merged.values())


def _with(one: Heard, speakers: tuple[Speaker, ...], silent: tuple[int, ...] = ()) -> Heard:
    return msgspec.structs.replace(one, speakers=speakers, silent=silent)


def told(code: str) -> Callable[[Heard], Iterator[Claim]]:
    """The check of a rule that is a known message: it tells what the message means."""

    def check(message: Heard) -> Iterator[Claim]:
        if message.rule == code:
            yield claim(message)

    return check


def claim(heard: Heard) -> Claim:
    """The message as a claim: what it means, who wrote it where, and what it does not prove."""
    ranks = sorted({s.rank for s in heard.speakers if s.rank >= 0})
    named = ", ".join(map(str, ranks[:16])) + (" ..." if len(ranks) > 16 else "")
    who = heard.about or tuple(Who(index=r, rank=r) for r in heard.silent)
    evidence = [Evidence(s.line, str(s.place)) for s in heard.speakers[:1]]
    if len(ranks) > 1 or (ranks and not heard.about):
        evidence.append(Evidence(f"written by rank {named}", "logs"))
    if heard.silent:
        quiet = ", ".join(map(str, heard.silent))
        waits = "they wait" if len(heard.silent) > 1 else "it waits"
        evidence.append(Evidence(f"rank {quiet} did not write that {waits}", "its log"))
    if heard.proves_not:
        evidence.append(Evidence(heard.proves_not, "what this does not prove"))
    return Claim(
        summary=heard.says,
        who=who,
        evidence=tuple(evidence),
        fix=heard.fix,
        severity=heard.severity,
        certainty=heard.certainty,
    )
