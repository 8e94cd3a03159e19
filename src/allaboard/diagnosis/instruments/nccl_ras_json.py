"""What `ncclras -f json` prints, and its monitoring mode in JSON.

Written from the source of NCCL 2.28 to 2.30 (src/ras/client_support.cc), not recorded: it needs GPUs.
NCCL 2.28 forgets a comma in each missing rank, and RCCL writes lines of text first: both are read all the
same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.finding import Place
from allaboard.facts.instruments.nccl_state import (
    NcclAnswer,
    NcclCommunicator,
    NcclRank,
    NcclReport,
    OperationCount,
)

MAX_DOCUMENTS = 1000
"""Documents of one exhibit: several answers may stand in one file."""
_MISSING_COMMA = re.compile(rb'("nvml_dev": -?\d+)(\s*\n\s*"status")')
"""Matches the place at which NCCL 2.28.7 and 2.28.9 write no comma."""
_NCCL_RESULTS = {
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
    6: "Remote process error",
}
"""Values of ncclResult_t that are errors, in the words of RAS's text."""
_DECODER = json.JSONDecoder()


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b'"communicators"' not in exhibit.data and b'"PEER_DEAD"' not in exhibit.data:
        return None
    data = _MISSING_COMMA.sub(rb"\1,\2", exhibit.data)
    text = data.decode("utf-8", "replace")
    reports, notes = [], []
    for begin, document in _documents(text):
        place = exhibit.place_of_line(text.count("\n", 0, begin))
        if document is None:
            notes.append(f"{exhibit.name}: an answer of ncclras that is cut short")
        elif isinstance(document.get("communicators"), list):
            reports.append(_report(document, place))
        elif document.get("event") == "PEER_DEAD" and isinstance(document.get("peer"), dict):
            dead = _rank(document["peer"], NcclAnswer.DEAD)
            reports.append(NcclReport(processes=(dead,), place=place))
    return Testimony(nccl=tuple(reports), notes=tuple(notes)) if reports or notes else None


def _documents(text: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield every JSON object that begins a line, with its position; None for one that is damaged."""
    position = 0
    for _ in range(MAX_DOCUMENTS):
        match = re.compile(r"^\{", re.M).search(text, position)
        if match is None:
            return
        try:
            document, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            is_ours = '"communicators"' in text[match.start() : match.start() + 2000]
            position = match.end()
            if is_ours:
                yield match.start(), None
            continue
        if isinstance(document, dict):
            yield match.start(), document


def _report(document: dict[str, Any], place: Place) -> NcclReport:
    communicators = []
    for entry in _dicts(document["communicators"]):
        present = [(r, _rank(r, NcclAnswer.PRESENT)) for r in _dicts(entry.get("ranks"))]
        lost = [
            _rank(r, NcclAnswer.DEAD if status.get("considered_dead") else NcclAnswer.SILENT)
            for r in _dicts(entry.get("missing_ranks"))
            # One that answers, and does not count itself in, is just joining or leaving.
            if isinstance(status := r.get("status"), dict)
            and (status.get("unresponsive") or status.get("considered_dead"))
        ]
        failed = [rank for _, rank in present if rank.error]
        counts = _counts(present)
        if lost or failed or counts:
            communicators.append(
                NcclCommunicator(
                    key=str(entry.get("hash", "")).removeprefix("0x").zfill(16),
                    size=_whole(entry.get("size"), 0),
                    ranks=(*lost, *failed),
                    counts=counts,
                )
            )
    return NcclReport(communicators=tuple(communicators), place=place)


def _counts(
    present: list[tuple[dict[str, Any], NcclRank]],
) -> dict[str, tuple[OperationCount, ...]]:
    """Return the operations that the ranks have launched unequally often, the usual count of each first."""
    counts: dict[str, dict[int, list[NcclRank]]] = {}
    for entry, rank in present:
        launched = entry.get("collective_counts")
        for op, count in launched.items() if isinstance(launched, dict) else ():
            if isinstance(count, int):
                counts.setdefault(str(op), {}).setdefault(count, []).append(rank)
    return {
        op: tuple(
            OperationCount(count=count, size=len(ranks), ranks=tuple(ranks))
            for count, ranks in sorted(by_count.items(), key=lambda c: -len(c[1]))
        )
        for op, by_count in counts.items()
        if len(by_count) > 1
    }


def _rank(entry: dict[str, Any], answer: NcclAnswer) -> NcclRank:
    status = entry.get("status")
    codes = (
        [status.get(k) for k in ("async_error", "init_state")] if isinstance(status, dict) else []
    )
    gpu = entry.get("cuda_dev", entry.get("cuda_devs", ""))
    return NcclRank(
        rank=_whole(entry.get("rank"), -1),
        host="" if entry.get("host") in (None, "unknown") else str(entry["host"])[:200],
        pid=max(0, _whole(entry.get("pid"), 0)),
        gpu=",".join(map(str, gpu)) if isinstance(gpu, list) else str(gpu),
        answer=answer,
        error=next(
            (_NCCL_RESULTS[c] for c in codes if isinstance(c, int) and c in _NCCL_RESULTS), ""
        ),
    )


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and abs(value) < 1 << 31 else otherwise


def _dicts(value: object) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


READER = LogReader(read=read_log)
