"""What was seen of each process, brought together: by its rank, else by its pid, else by its file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER
from allaboard.diagnosis.logs.node_local_ranks import shown
from allaboard.diagnosis.logs.rank_identification import identified
from allaboard.facts import Glimpse, Stack, Who


class Process(msgspec.Struct, kw_only=True):
    """``number`` is its rank, or one from `UNNAMED` on; ``role`` what it is where it takes no part in the
    training, "" for what may be a rank."""

    number: int
    who: Who
    seen: list[Glimpse]
    role: str = ""

    @property
    def stack(self) -> Stack | None:
        """The last one that was seen."""
        return next((g.stack for g in reversed(self.seen) if g.stack is not None), None)

    @property
    def command(self) -> str:
        return next((g.command for g in self.seen if g.command), "")


def processes(glimpses: Iterable[Glimpse], one_node: bool = True) -> list[Process]:
    """All of them, in the order in which they were seen. ``one_node``: whether numbers on a node may be
    ranks."""
    seen = identified(glimpses, one_node)
    together: dict[tuple[object, ...], list[Glimpse]] = {}
    for number, one in enumerate(seen):
        together.setdefault(_key(number, one), []).append(one)
    files = Counter(str(key[1]) for key in together if key[0] == "file")
    names = Counter(PurePosixPath(f).name for f in files)
    found: list[Process] = []
    count = 0
    for number, (key, own) in enumerate(together.items()):
        rank = own[0].rank if key[0] == "rank" else -1
        who = _ranked(own) if rank >= 0 else _unnamed(own, count, files, names)
        count += rank < 0
        role = next((g.role for g in own if g.role), "")
        found.append(
            Process(
                number=rank if rank >= 0 else FIRST_UNRANKED_NUMBER + number,
                who=who,
                seen=own,
                role=role,
            )
        )
    return found


def _key(number: int, one: Glimpse) -> tuple[object, ...]:
    if one.rank >= 0:
        return ("rank", one.rank)
    if one.pid:
        return ("pid", one.host, one.pid)
    if one.guess >= 0:
        return ("file", shown(one.origin.file), one.host, one.guess)
    return ("file", one.origin.file, one.host, -1 - number)


def _ranked(own: Sequence[Glimpse]) -> Who:
    rank = own[0].rank
    return Who(index=rank, rank=rank, host=_host(own), pid=next((g.pid for g in own if g.pid), 0))


def _unnamed(
    own: Sequence[Glimpse], count: int, files: Mapping[str, int], names: Mapping[str, int]
) -> Who:
    one = own[0]
    if one.pid:
        return Who(job="process", index=-1, host=_host(own), pid=one.pid)
    source = shown(one.origin.file) if one.guess >= 0 else one.origin.file
    name = PurePosixPath(source).name
    name = source if names[name] > 1 else name
    if one.guess >= 0:
        return Who(
            job="process", index=-1, host=_host(own), file=f"local rank {one.guess} of {name}"
        )
    if all(g.stack is None for g in own):
        return Who(job="process", index=count, host=_host(own))
    file = f"{name}:{one.origin.line}" if files[one.origin.file] > 1 and one.origin.line else name
    return Who(job="process", index=-1, host=_host(own), file=file)


def _host(own: Sequence[Glimpse]) -> str:
    return next((g.host for g in own if g.host), "")
