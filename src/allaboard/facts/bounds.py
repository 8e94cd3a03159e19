"""Bounds of the numbers that come from other hosts: msgspec checks them while it decodes a message.

A value that a healthy agent never sends must not reach the state of the job. The types are used for every
number that agents send to each other; in this process, where values are made and not decoded, they are plain
numbers.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MAX_CLOCK_S = 1e10
"""No monotonic clock is farther from zero than one that counts from 1970 (s)."""
MAX_PHASE = 8
"""Number of the last phase of a member (`member.Phase`)."""
MAX_WORKER = (1 << 12) - 1
"""Highest number of a worker on its host: the leader keeps the agent's number in the bits above it."""

Instant = Annotated[float, Meta(ge=-MAX_CLOCK_S, le=MAX_CLOCK_S)]
"""A time by some clock (s)."""
Measure = Annotated[float, Meta(ge=-1e18, le=1e18)]
"""A measured number: a duration in seconds, a rate in bytes a second, a share."""
Whole = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A whole number that fits into 64 bits."""
PhaseNumber = Annotated[int, Meta(ge=0, le=MAX_PHASE)]
"""Number of a phase."""
RankNumber = Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]
"""A rank, or an index within a job; -1 if it is not known."""
WorldSize = Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]
"""How many ranks a job has, as a script passed it: 0 and -1 are mistakes that are reported."""
Pid = Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]
"""A process on the host of the sender."""
WorkerNumber = Annotated[int, Meta(ge=-1, le=MAX_WORKER)]
"""Number of a worker on the host of the sender; -1 if it is none of its workers."""
AgentNumber = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
"""Number under which the leader knows an agent; 0 is its own."""
ExitStatus = Annotated[int, Meta(ge=-64, le=255)]
"""An exit code or, below 0, a signal."""
HostName = Annotated[str, Meta(max_length=255, pattern=r"^[\w.:%\[\]-]*$")]
"""Name or address of a host, without anything that a shell or a terminal would take for a command."""
ShortText = Annotated[str, Meta(max_length=1024)]
"""A text of the handshake."""
SignalNumber = Annotated[int, Meta(ge=0, le=64)]
"""Number of a signal, see signal(7)."""
