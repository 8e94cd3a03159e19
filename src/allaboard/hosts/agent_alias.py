"""The agent that a drop-in started listens for the program that called it: the program is the one
to name."""

from __future__ import annotations

import json

from allaboard.hosts import proc

AGENT = "allaboard.dropin.attach"
MAX_COMMAND_LENGTH = 200
"""Characters of a command that are told."""


def owner_behind_agent(pid: int, command: str) -> tuple[int, str]:
    """Return pid and command line of the process to name for one that holds a port here.

    An agent's own command line holds what it was given to do: nobody's business, and ending the
    agent alone would not free the port.
    """
    attached_pid = attached_pid_of(proc.command_line(pid)) if AGENT in command else 0
    return (
        (attached_pid, " ".join(proc.command_line(attached_pid))[:MAX_COMMAND_LENGTH])
        if attached_pid
        else (pid, command)
    )


def attached_pid_of(arguments: list[str]) -> int:
    """Return the pid of the process that this command line of an agent names; 0 if it is no
    agent's."""
    module = next((a for a in arguments[:-1] if a == AGENT or a.startswith(f"{AGENT}.")), None)
    if module is None:
        return 0
    try:
        return int(json.loads(arguments[arguments.index(module) + 1])["pid"])
    except (ValueError, KeyError, TypeError):
        return 0
