"""Identification of processes on all hosts: the ``pid`` on this host, ``(agent << 32) | pid`` on another's,
where ``agent`` counts the agents that came to the rendezvous address."""

from __future__ import annotations


def process_key(agent: int, pid: int) -> int:
    """Return the number that events and commands use for the process ``pid`` of this agent; agent 0 is our
    own."""
    return (agent << 32) | pid


def split_process_key(key: int) -> tuple[int, int]:
    """Return the agent and the pid."""
    return key >> 32, key & 0xFFFFFFFF
