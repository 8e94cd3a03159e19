"""What PyTorch's own analyser of Flight Recorder traces prints (`torchfrtrace`, `fr_trace`).

The wordings are those of tools/flight_recorder of PyTorch 2.5 and 2.6, and of
torch/distributed/flight_recorder of 2.7 to 2.13, read in their sources.
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Frame, Heard, Speaker, Testimony, Who
from allaboard.facts.rank_sets import name_ranks

RULE_OF_REPORT = "DUMP012"
"""The rule that reports what the analyser found."""
MAX_BLOCKS = 8
"""Findings of the analyser that are read of one exhibit: the first of a group explains the others."""
MAX_BLOCK_CHARS = 20_000
"""Characters of one finding: a long stack of calls."""
MAX_NAMED_RANKS = 64
"""Ranks that a claim is about."""
_BEGIN = re.compile(
    r"^[^\n]{0,80}?(?:Not all ranks joining collective"
    r"|Collective sequence number: \d+ has errors"
    r"|Input/output mismatch in the collective"
    r"|Collective \d+ (?:at entry \d+ )?errors)[^\n]*",
    re.MULTILINE,
)
_NUMBER = re.compile(r"(?:sequence number: |collective |Collective )(\d+)")
_GROUP = re.compile(r"(?:^group info: |for group )(\S+)", re.MULTILINE)
_CALL = re.compile(r"(?:^collective: | collective )\w+:(\w+)", re.MULTILINE)
_MISSING = re.compile(r"(?:missing ranks: |Missing ranks are )\{(?P<ranks>[\d, ]{1,20000})\}")
_CULPRIT = re.compile(
    r"Culprit rank (?P<rank>\d{1,7}); Error type: (?P<kind>[A-Z_]+)"
    r"(?:, (?P<details>[^\n]{1,300}?)(?=, Culprit rank|$))?",
    re.MULTILINE,
)
_OTHER_CALL = re.compile(
    r"type: '(?P<expected>[^']+)' does not match found collective type: '(?P<found>[^']+)'"
)
_FRAME = re.compile(
    r"^\s*(?P<name>[\w<>.]{1,200}) at (?P<file>[^\n]{1,500}):(?P<line>\d{1,7})$", re.M
)
_ANY_MAY_DIFFER = (
    "that these ranks are at fault: each is compared with the first rank, which may itself be the "
    "odd one"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b"ollective" not in exhibit.data:
        return None
    text = exhibit.text
    begins = [match.start() for match in _BEGIN.finditer(text)][: MAX_BLOCKS + 1]
    ends = [*begins[1:], len(text)]
    heard_by_text: dict[str, Heard] = {}
    for begin, end in list(zip(begins, ends, strict=False))[:MAX_BLOCKS]:
        block = text[begin : min(end, begin + MAX_BLOCK_CHARS)]
        heard = _read_block(exhibit, block, text.count("\n", 0, begin))
        if heard is not None:
            heard_by_text.setdefault(heard.says, heard)
    return Testimony(heard=tuple(heard_by_text.values())) if heard_by_text else None


def _read_block(exhibit: Exhibit, block: str, lines_before: int) -> Heard | None:
    missing = _MISSING.search(block)
    culprits = {int(m["rank"]): m for m in _CULPRIT.finditer(block)}
    if missing is not None:
        ranks = tuple(sorted(map(int, re.findall(r"\d+", missing["ranks"]))))
        says = f"{name_ranks(ranks)} did not join {_collective(block)}"
    elif culprits:
        ranks = tuple(sorted(culprits))
        says = _difference(ranks, culprits[ranks[0]], _collective(block))
    elif block.startswith("Input/output mismatch"):
        ranks, says = (
            (),
            f"the sizes of the inputs and outputs of all ranks do not fit in {_collective(block)}",
        )
    else:
        return None
    line = block.partition("\n")[0].strip()
    speaker = Speaker(-1, line[:300], exhibit.place_of_line(lines_before))
    return Heard(
        rule=RULE_OF_REPORT,
        says=f"{says}, as PyTorch's Flight Recorder shows",
        speakers=(speaker,),
        fix=_fix(ranks),
        about=tuple(Who(index=r, rank=r) for r in ranks[:MAX_NAMED_RANKS]),
        proves_not=_ANY_MAY_DIFFER if culprits else "",
    )


def _fix(ranks: tuple[int, ...]) -> str:
    if not ranks:
        return "compare the sizes that the ranks pass there"
    whose = ("its log", "its host") if len(ranks) == 1 else ("their logs", "each of their hosts")
    return f"look at {name_ranks(ranks)}: {whose[0]}, or while it hangs, on {whose[1]}: allaboard diagnose"


def _collective(block: str) -> str:
    """Return the collective in words: its name, its number, its group, and the user's line that called it."""
    call, number, group = _CALL.search(block), _NUMBER.search(block), _GROUP.search(block)
    words = call[1] if call is not None else "a collective"
    if number is not None:
        words += f", number {number[1]}"
    if group is not None:
        words += f" of group {group[1].rstrip('.,')}"
    frames = [Frame(m["file"], int(m["line"]), m["name"]) for m in _FRAME.finditer(block)]
    user_frame = next((frame for frame in frames if frame.is_user), None)
    return f"{words}, called at {user_frame}" if user_frame is not None else words


def _difference(ranks: tuple[int, ...], culprit: re.Match[str], collective: str) -> str:
    other_call = _OTHER_CALL.search(culprit["details"] or "")
    if other_call is not None:
        return (
            f"{name_ranks(ranks)} called {other_call['found'].rpartition(':')[2]} where the first rank "
            f"called {collective}"
        )
    kind = culprit["kind"].removesuffix("_MISMATCH").replace("_", " ").lower()
    verb = "differs" if len(ranks) == 1 else "differ"
    return f"{name_ranks(ranks)} {verb} from the first rank in {collective} ({kind})"


READER = LogReader(read=read_log)
