"""What processes are called: by the ``pid`` on this host, and by ``(agent << 32) | pid`` on another's, where
``agent`` counts the agents that came to the meeting place."""

from __future__ import annotations


def process_key(agent: int, pid: int) -> int:
    """What events and commands call the process ``pid`` of this agent; 0 is our own."""
    return (agent << 32) | pid


def split_process_key(called: int) -> tuple[int, int]:
    """The agent and the pid."""
    return called >> 32, called & 0xFFFFFFFF
