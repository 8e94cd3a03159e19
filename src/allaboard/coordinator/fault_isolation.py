"""Finds the agent whose reports make the state of a job fail, so that only this agent is lost. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from allaboard.facts import JobView
from allaboard.protocol.events import Event
from allaboard.protocol.process_keys import split_process_key


def sender_of(event: Event) -> int:
    """Return the number of the agent that reported the event; 0 if it is this one, or none is named."""
    pid = getattr(event, "pid", 0)
    return split_process_key(pid)[0] or getattr(event, "agent", 0)


def describe_fault(error: Exception) -> str:
    """Return what went wrong and where, as one clause for people."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    location = ""
    if trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        location = f" at {module}:{trace.tb_lineno}"
    return f"{type(error).__name__}: {error}{location}"


def without_agents(view: JobView, agents: Sequence[int], kept: Sequence[int]) -> JobView:
    """Return the picture of the job without the members of those of these agents that are not kept."""
    dropped = set(agents) - set(kept)
    members = tuple(m for m in view.members if split_process_key(m.key)[0] not in dropped)
    return msgspec.structs.replace(view, members=members)


def find_faulty_agent(agents: Sequence[int], fails_with: Callable[[Sequence[int]], bool]) -> int:
    """Return the agent whose members alone, beside those of this host, make the judgement fail; 0 if it is
    none.

    ``fails_with`` judges the job with the members of some agents left in. The agents are halved, so that
    thousands of them take a dozen judgements.
    """
    if not agents or fails_with(()):
        return 0  # it fails without any of them
    suspects = list(agents)
    while len(suspects) > 1:
        half = len(suspects) // 2
        for part in (suspects[:half], suspects[half:]):
            if fails_with(part):
                suspects = part
                break
        else:
            return 0  # only several of them together make it fail
    return suspects[0] if fails_with(suspects) else 0
