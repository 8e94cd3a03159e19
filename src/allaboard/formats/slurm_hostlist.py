"""Expands Slurm's lists of hosts: ``rack[0-1]node[08-10,12],login`` as `scontrol show hostnames` does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from allaboard.errors import AllaboardError
from allaboard.late_pattern import compile_late

MAX_HOSTS = 65_536
"""Hosts of one range, as in Slurm (MAX_RANGE of its hostlist.c), and of one name with several brackets."""
MAX_LIST_HOSTS = 100_000
"""Hosts of a whole list."""
_RANGE = compile_late(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)
_PART = compile_late(r"([^\[\]]*)\[([^\[\]]*)\]")


class HostlistError(AllaboardError):
    """A list of hosts that Slurm could not have written; the message says which part is wrong."""


def expand_hostlist(text: str) -> list[str]:
    """Return the names of all hosts of a list, in Slurm's order.

    Raises:
        HostlistError: a bracket is open or nested, a range is none, or there are too many hosts.
    """
    hosts: list[str] = []
    for entry in _split_words(text):
        hosts += _expand_word(entry)
        if len(hosts) > MAX_LIST_HOSTS:
            raise HostlistError(f"the list has more than {MAX_LIST_HOSTS} hosts")
    return hosts


def _split_words(text: str) -> Iterator[str]:
    """Yield what stands between commas and blanks outside of brackets."""
    for entry in re.findall(r"(?:\[[^\]]*\]?|[^\s,\[])+", text):
        outside = _PART.sub("", entry)
        if "[" in outside or "]" in outside:
            raise HostlistError(f'the brackets of "{entry[:80]}" do not match')
        yield entry


def _expand_word(entry: str) -> list[str]:
    parts = _PART.findall(entry)
    if not parts:
        return [entry]
    suffix = entry.rpartition("]")[2]
    numbers = [_expand_ranges(ranges, entry) for _, ranges in parts]
    count = 1
    for of_bracket in numbers:
        count *= len(of_bracket)
    if count > MAX_HOSTS:
        raise HostlistError(f'"{entry[:80]}" has {count} hosts, more than {MAX_HOSTS}')
    prefixes = [prefix for prefix, _ in parts]
    return [
        "".join(itertools.chain(*zip(prefixes, c, strict=True), (suffix,)))
        for c in _orders(numbers)
    ]


def _orders(numbers: Sequence[list[str]]) -> Iterator[tuple[str, ...]]:
    """Yield one number of each bracket, in Slurm's order: the last bracket counts fastest, then the first,
    the second, and so on."""
    for *earlier, fastest in itertools.product(*reversed(numbers[:-1]), *numbers[-1:]):
        yield (*reversed(earlier), fastest)


def _expand_ranges(ranges: str, entry: str) -> list[str]:
    numbers: list[str] = []
    for text in ranges.split(","):
        match = _RANGE.fullmatch(text)
        low = int(match[1]) if match is not None else 1
        high = int(match[2] or match[1]) if match is not None else 0
        if match is None or high < low:
            raise HostlistError(f'"{text[:40]}" in "{entry[:80]}" is no range of numbers')
        if high - low >= MAX_HOSTS:
            raise HostlistError(f'"{text[:40]}" in "{entry[:80]}" has more than {MAX_HOSTS} hosts')
        # Leading zeros are part of the names, as wide as the first number is.
        numbers += [f"{number:0{len(match[1])}}" for number in range(low, high + 1)]
        if len(numbers) > MAX_LIST_HOSTS:
            raise HostlistError(f'"{entry[:80]}" has more than {MAX_LIST_HOSTS} hosts')
    return numbers
