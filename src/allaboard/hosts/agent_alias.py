"""For whom a process listens: the agent that a drop-in started listens for the program that called it."""

from __future__ import annotations

import json

from allaboard.hosts import proc

AGENT = "allaboard.dropin.attach"
LONGEST = 200
"""Characters of a command that are told."""


def behind(pid: int, command: str) -> tuple[int, str]:
    """The process to name, and its command line, of one that holds a port here. What an agent was told on
    its command line is nobody's business, and to end it alone would not free anything."""
    found = watched(proc.command_line(pid)) if AGENT in command else 0
    return (found, " ".join(proc.command_line(found))[:LONGEST]) if found else (pid, command)


def watched(words: list[str]) -> int:
    """The pid of the process that this command line of an agent names; 0 where it is none."""
    if AGENT not in words[:-1]:
        return 0
    try:
        return int(json.loads(words[words.index(AGENT) + 1])["pid"])
    except (ValueError, KeyError, TypeError):
        return 0
