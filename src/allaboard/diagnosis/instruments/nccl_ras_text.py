"""What `ncclras` prints, with and without ``-v``, and in monitoring mode.

Written from the source of NCCL 2.24 to 2.30 (src/ras/client_support.cc, src/ras/peers.cc) and its user
guide, not recorded: it needs GPUs.
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.nccl_state import (
    NcclAnswer,
    NcclCommunicator,
    NcclRank,
    NcclReport,
    OperationCount,
)

MAX_LINES = 200_000
"""Lines that are read of one exhibit."""
_BEGIN = re.compile(r"^(?:NCCL|RCCL) version \S+ compiled with (?:CUDA|HIP|ROCm)", re.M)
_MONITORED = re.compile(
    r"^\[[\d-]+ [\d:]+\] PEER_DEAD: "
    r"Process (?P<pid>\d+) on node (?P<host>\S+) managing GPUs? (?P<gpu>[^\n]*)$",
    re.M,
)
_SECTION = re.compile(r"^#(?P<group>\d+)-(?P<number>\d+) \((?P<key>[0-9a-f]+)\) (?P<kind>[A-Z]+)$")
_TABLE_ROW = re.compile(
    r"^ *(?P<group>\d+) +\d+ +\d+ +[\d-]+ +(?P<size>\d+) +\d+ +[A-Z]+ +[A-Z,]+$"
)
_PROCESS = re.compile(r"^  Process (?P<pid>\d+) on node (?P<host>\S+) managing GPUs? (?P<gpu>.+)$")
_RANK = re.compile(
    r"^  Rank (?P<rank>\d+)(?: (?:has launched up to operation (?P<count>\d+)|"
    r"(?P<none>has not launched any operations)|has status (?P<status>\w+)|reported (?P<error>[^-]+?)))?"
    r" -- (?:GPU (?P<gpu>.+?) managed by process (?P<pid>\d+) on node (?P<host>\S+)|\[.*\])$"
)
_MISSING_RANKS = re.compile(r"^  The missing ranks?: (?P<ranks>[\d, -]+)$")
_COUNT_HEAD = re.compile(
    r"^  Communicator ranks have different (?:(?P<op>\w+) operation|collective operation) counts$"
)
_COUNT_GROUP = re.compile(
    r"^  (?P<size>\d+) ranks have (?:launched up to operation (?P<count>\d+)|not launched any operations)$"
)
_ERROR_GROUP = re.compile(r"^  \d+ ranks reported (?P<error>.+)$")
_STATUS_HEAD = "  Communicator ranks have different status"


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    begins = [m.start() for m in _BEGIN.finditer(text)] if "\nCommunicators..." in text else []
    ends = [*begins[1:], len(text)][: len(begins)]
    reports = [
        _Parser(exhibit, text.count("\n", 0, begin)).parse(text[begin:end].splitlines())
        for begin, end in zip(begins, ends, strict=True)
    ]
    for match in _MONITORED.finditer(text):
        dead = NcclRank(
            host=match["host"],
            pid=int(match["pid"]),
            gpu=match["gpu"].strip(),
            answer=NcclAnswer.DEAD,
        )
        place = exhibit.place_of_line(text.count("\n", 0, match.start()))
        reports.append(NcclReport(processes=(dead,), place=place))
    return Testimony(nccl=tuple(reports)) if reports else None


class _Parser:
    """Reads one answer line by line; what a line means depends on the heading above it."""

    def __init__(self, exhibit: Exhibit, first_line: int) -> None:
        self._exhibit, self._first_line = exhibit, first_line
        self._sizes: dict[str, int] = {}
        self._ranks: dict[tuple[str, str], list[NcclRank]] = {}
        self._counts: dict[tuple[str, str], dict[str, list[OperationCount]]] = {}
        self._processes: list[NcclRank] = []
        self._communicator: tuple[str, str] | None = None
        self._heading = self._operation = self._error = ""

    def parse(self, lines: list[str]) -> NcclReport:
        """Return the answer in these lines."""
        for line in lines[:MAX_LINES]:
            self._read_line(line.rstrip())
        keys = dict.fromkeys([*self._ranks, *self._counts])
        return NcclReport(
            communicators=tuple(
                NcclCommunicator(
                    key=key,
                    size=self._sizes.get(group, 0),
                    ranks=tuple(self._ranks.get((group, key), ())),
                    counts={
                        op: tuple(counts)
                        for op, counts in self._counts.get((group, key), {}).items()
                    },
                )
                for group, key in keys
            ),
            processes=tuple(self._processes),
            place=self._exhibit.place_of_line(self._first_line),
        )

    def _read_line(self, line: str) -> None:
        if row := _TABLE_ROW.match(line):
            self._sizes[row["group"]] = int(row["size"])
        elif line in ("INCOMPLETE", "DEAD", "TIMEOUT"):
            self._heading, self._communicator = line, None
        elif section := _SECTION.match(line):
            self._communicator = section["group"], section["key"]
            self._heading, self._operation, self._error = section["kind"], "", ""
        elif process := _PROCESS.match(line):
            answer = NcclAnswer.DEAD if self._heading == "DEAD" else NcclAnswer.SILENT
            unanswered = NcclRank(
                host=process["host"],
                pid=int(process["pid"]),
                gpu=process["gpu"].strip(),
                answer=answer,
            )
            self._processes.append(unanswered)
        elif self._communicator is not None:
            self._read_detail(self._communicator, line)

    def _read_detail(self, communicator: tuple[str, str], line: str) -> None:
        if line == _STATUS_HEAD:
            self._heading = "STATUS"
        elif head := _COUNT_HEAD.match(line):
            self._heading, self._operation = "COUNTS", head["op"] or ""
        elif group := _COUNT_GROUP.match(line):
            self._add_count(communicator, int(group["count"] or 0), int(group["size"]))
        elif error := _ERROR_GROUP.match(line):
            self._error = error["error"]
        elif missing := _MISSING_RANKS.match(line):
            for number in re.findall(r"\d+", missing["ranks"]):
                rank = NcclRank(rank=int(number), answer=NcclAnswer.SILENT)
                self._ranks.setdefault(communicator, []).append(rank)
        elif match := _RANK.match(line):
            self._read_rank(communicator, match)

    def _read_rank(self, communicator: tuple[str, str], match: re.Match[str]) -> None:
        answer = NcclAnswer.SILENT if self._heading == "INCOMPLETE" else NcclAnswer.PRESENT
        error = (match["error"] or self._error) if self._heading == "ERROR" else ""
        rank = NcclRank(
            rank=int(match["rank"]),
            host=match["host"] or "",
            pid=int(match["pid"] or 0),
            gpu=match["gpu"] or "",
            answer=answer,
            error=error,
        )
        if self._heading in ("INCOMPLETE", "ERROR"):
            self._ranks.setdefault(communicator, []).append(rank)
        elif self._heading == "COUNTS":
            if match["count"] is not None or match["none"] is not None:
                self._add_count(communicator, int(match["count"] or 0), 1)
            counts = self._counts.get(communicator, {}).get(self._operation)
            if counts:
                counts[-1] = OperationCount(
                    count=counts[-1].count, size=counts[-1].size, ranks=(*counts[-1].ranks, rank)
                )

    def _add_count(self, communicator: tuple[str, str], count: int, size: int) -> None:
        counts = self._counts.setdefault(communicator, {}).setdefault(self._operation, [])
        counts.append(OperationCount(count=count, size=size))


READER = LogReader(read=read_log)
