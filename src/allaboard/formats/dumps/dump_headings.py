"""Headings above stack dumps of several processes in one text, and the process that each names. Pure.

So people put them together by hand, or with a loop over ranks, pods or hosts: "rank 3:", "# process 1", "===
llm-worker-2 ===", "$ kubectl exec llm-worker-2 -- py-spy dump --pid 1", "Process 1 timed out with traceback".
"""

from __future__ import annotations

import re

from allaboard.formats.dumps.log_prefixes import Label

MAX_HEADING_CHARS = 200
"""Characters of a heading; what is longer is a message."""
MAX_PROCESS_NUMBER = 1000
"""A lower number of a process is its rank, and any other its pid."""
_RANK = re.compile(
    r"(?:(?<![A-Za-z])([A-Za-z]{1,12})[ _-])?(?<![A-Za-z-])rank[ _:#=-]{0,3}(\d{1,7})(?![\w.]\d|\w)",
    re.IGNORECASE,
)
"""A rank, and the word before it."""
_PART_RANKS = ("node", "machine", "group", "tp", "pp", "dp", "cp", "ep", "sp", "mp")
"""Words that make it the rank of a host, or one within a part of the job."""
_DEVICE = re.compile(r"(?:GPU|cuda:|device)[ :#]{0,2}(\d{1,3})\W*$", re.IGNORECASE)
_PROCESS = re.compile(r"(?<![\w-])process[ _#-]{0,2}(\d{1,7})(?![\d.]|: \S)", re.IGNORECASE)
_PID = re.compile(r"(?<![\w-])pid[ =:#]{0,3}(\d{1,9})(?![\d.])", re.IGNORECASE)
_TASK = re.compile(
    r"(?<![\w-])(ps|chief|worker|evaluator|master)(?:[ _:#/]{1,3}(?:task:?)?(\d{1,5}))?(?![\w-])",
    re.I,
)
_REMOTE = re.compile(
    r"\b(?:kubectl|oc)\b.{0,80}?\bexec (?:(?:-[cn]|--container|--namespace) \S+ |-\S+ )*"
    r"(?P<pod>[a-z0-9][a-z0-9./-]*) "
    r"|\bssh (?:-\S+ )*(?:\w+@)?(?P<host>[A-Za-z0-9][\w.-]+) "
    r"|^(?P<node>[A-Za-z0-9][\w.-]*) \| (?:CHANGED|SUCCESS|FAILED)\b"  # of ansible
)
_FRAMED_NAME = re.compile(
    r"(?:[=#*<>\[\s-]{1,40}|(?:on|from) )(?:(?:pod|node|host|container)[ :/]+)?"
    r"(?P<name>[A-Za-z][\w.-]*\d[\w.-]*?|\d{1,3}(?:\.\d{1,3}){3})[=#*<>\]:\s-]{0,40}$",
    re.IGNORECASE,
)
"""A name with a number, or an address, between signs, as loops print it."""
_OF_OTHERS = re.compile(
    r"\bfor \w+ in\b|\bdo echo\b|\b(?:all|every|each|other|others|except|but|unlike|besides)\b",
    re.I,
)
"""A command that prints all of them names none, and a sentence about the others none of them."""


def named_process(line: str) -> Label | None:
    """Return the one process that a heading names; None if it names none, or several."""
    if len(line) > MAX_HEADING_CHARS or _OF_OTHERS.search(line) or line.startswith((" ", "\t")):
        return None
    ranks = [(word.lower(), int(number)) for word, number in _RANK.findall(line)]
    if ranks:
        return _only_rank(ranks)
    numbers = {int(n) for n in _PROCESS.findall(line) if int(n) < MAX_PROCESS_NUMBER}
    if numbers:
        return _label(rank=numbers.pop()) if len(numbers) == 1 else None
    if (remote := _REMOTE.search(line)) is not None:
        return _label(host=remote["pod"] or remote["host"] or remote["node"])
    if (pid := _PID.search(line)) is not None:
        return _label(pid=int(pid[1]))
    if (device := _DEVICE.search(line)) is not None:
        return _label(local_rank=int(device[1]))
    if (framed := _FRAMED_NAME.match(line)) is not None:
        return _label(host=framed["name"])
    task = _TASK.search(line)
    if task is not None and (task[2] or task[1].lower() == "chief"):
        return _label(host=f"{task[1].lower()} {task[2] or 0}")
    return None


def _only_rank(ranks: list[tuple[str, int]]) -> Label | None:
    whole = {number for word, number in ranks if word != "local" and word not in _PART_RANKS}
    local = {number for word, number in ranks if word == "local"}
    if len(whole) == 1:
        return _label(rank=whole.pop())
    return _label(local_rank=local.pop()) if not whole and len(local) == 1 else None


def _label(rank: int = -1, host: str = "", pid: int = 0, local_rank: int = -1) -> Label:
    return Label(rank, host, pid, by_launcher=False, local_rank=local_rank)
