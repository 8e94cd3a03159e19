"""Pages of PyTorch's debug server (``torch.distributed.debug``), which asks all ranks. Pure.

Its templates do not escape what the ranks answer, so the pages are no well-formed HTML: a stack's
``<module>`` stands in them as it is. Read with PyTorch 2.13 (torch/distributed/debug/_frontend.py).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import msgspec

FRONTEND_MARK, WORKER_MARK = "Torch Distributed Debug Server", "torch.distributed.WorkerServer"
"""What the front page of the server for all ranks, and that of one rank's own server, has."""
MAX_RANKS = 100_000
"""Ranks of one page."""
_ANSWER = re.compile(
    r"<h2>Rank (?P<rank>\d{1,7}): (?P<address>[^<\n]*)</h2>\s*(?:<p>Failed to fetch: "
    r"status=(?P<status>\d+)</p>\s*)?<pre>(?P<text>.*?)</pre>(?=\s*(?:<h2>Rank \d|</section>|\Z))",
    re.DOTALL,
)


class RankAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank answered."""

    rank: int
    """The rank."""
    address: str
    """Where it was asked."""
    status: int
    """Status of HTTP; 200 if it answered."""
    text: str
    """The answer, or what went wrong."""


def read_debug_page(page: str) -> list[RankAnswer]:
    """Return the answers of all ranks on a page, in their order."""
    answers = []
    for match, _ in zip(_ANSWER.finditer(page), range(MAX_RANKS), strict=False):
        text = match["text"]
        answers.append(
            RankAnswer(
                rank=int(match["rank"]),
                address=match["address"].strip(),
                status=int(match["status"] or 200),
                # A later version may escape.
                text=html.unescape(text) if "&lt;" in text and "<" not in text else text,
            )
        )
    return answers


def as_dump(answers: Iterable[RankAnswer]) -> str:
    """Return the answers as the server itself writes them into a file (``dump_dir``)."""
    answers = list(answers)
    silent = [a for a in answers if a.status != 200]
    lines = []
    if silent:
        lines.append(f"PARTIAL DATA: {len(answers) - len(silent)}/{len(answers)} workers responded")
        lines += [f"  Rank {a.rank}: {' '.join(a.text.split())[:300]}" for a in silent]
    for answer in answers:
        lines.append(f"=== Rank {answer.rank}: {answer.address} ===")
        lines.append(answer.text if answer.status == 200 else f"Error: {answer.status}")
    return "\n".join(lines) + "\n"
