"""The files of NCCL's Inspector plugin (``NCCL_INSPECTOR_DUMP_DIR``): one JSON object a collective.

Written from the plugin's source and page in NCCL 2.28 to 2.30 (plugins/profiler/inspector), not recorded: it
needs GPUs.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.collective_times import RankTimes, TimedCollective

MAX_COLLECTIVES = 2000
"""Collectives of one rank and communicator that are kept: the last ones."""
_MARK = b'"inspector_output_format_version"'
_DECODER = json.JSONDecoder()
_Key = tuple[str, int, int, str, int]


def read_log(exhibit: Exhibit) -> Testimony | None:
    if _MARK not in exhibit.data[: 1 << 16]:
        return None
    collectives: dict[_Key, deque[TimedCollective]] = defaultdict(
        lambda: deque(maxlen=MAX_COLLECTIVES)
    )
    for record in _records(exhibit.text):
        head, timing = record.get("header"), record.get("coll_perf")
        metadata = record.get("metadata")
        if not isinstance(head, dict) or not isinstance(timing, dict):
            continue
        whose = metadata if isinstance(metadata, dict) else {}
        values = (head.get("rank"), head.get("n_ranks"), timing.get("coll_sn"))
        duration = timing.get("coll_exec_time_us")
        if not all(isinstance(v, int) for v in values) or not isinstance(duration, int | float):
            continue
        pid = whose.get("pid")
        key = (
            str(head.get("id", "")),
            int(head["rank"]),
            int(head["n_ranks"]),
            str(whose.get("hostname", "")),
            pid if isinstance(pid, int) else 0,
        )
        collectives[key].append(
            TimedCollective(str(timing.get("coll", "")), int(timing["coll_sn"]), float(duration))
        )
    ranks = tuple(
        RankTimes(
            communicator=key[0],
            rank=key[1],
            size=key[2],
            host=key[3],
            pid=max(0, key[4]),
            collectives=tuple(entries),
            place=exhibit.place_of_line(0),
        )
        for key, entries in collectives.items()
    )
    return Testimony(timed=ranks)


def _records(text: str) -> Iterator[dict[str, Any]]:
    """Yield every JSON object, one a line or indented over several; what is damaged is passed over."""
    position = 0
    while (position := text.find("{", position)) >= 0:
        try:
            record, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            following = text.find("\n{", position)
            if following < 0:
                return
            position = following + 1
            continue
        if isinstance(record, dict):
            yield record


READER = LogReader(read=read_log)
