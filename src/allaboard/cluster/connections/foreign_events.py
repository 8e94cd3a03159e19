"""Translates the events of other hosts: into this host's clock, and its names for their processes."""

from __future__ import annotations

from math import inf

import msgspec

from allaboard.blackbox.clock import shift_times
from allaboard.cluster.connections.forgery_report import FORGED_KIND
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.protocol.events import (
    AgentInterrupted,
    CallsTraced,
    Event,
    LockWaitsSampled,
    MemberFactsReported,
    ProcessExited,
    ProcessSampled,
    ResourcesMeasured,
    SnapshotTaken,
    StackSampled,
    StrangerConnected,
    TrafficSampled,
)
from allaboard.protocol.process_keys import process_key

WORKER_NUMBER_BITS = 12
"""Bits for the worker of an agent in the number by which the leader knows it; the agent's number is above
them."""


def translate_event(event: Event, member: MemberConnection, latest: float = inf) -> Event | None:
    """Return an event of another host with our clock and our name for the process.

    None for kinds of events that no other host may report: the set is closed. No time is later than
    ``latest``, at which its message came: a deadline that counts from it must not lie in the future.
    """
    clock_offset, number = member.clock_offset, member.number
    match event:
        case ProcessSampled():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                # Workers of all hosts share one number space: the agent's number is in the high bits.
                worker=(number << WORKER_NUMBER_BITS) + event.worker,
                sampled_at=min(event.sampled_at + clock_offset, latest),
                box=shift_times(event.box, clock_offset, latest) if event.box is not None else None,
                host=member.hello.host,
            )
        case ProcessExited():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                exited_at=min(event.exited_at + clock_offset, latest),
            )
        case StackSampled() | TrafficSampled():
            return msgspec.structs.replace(
                event,
                pid=process_key(number, event.pid),
                sampled_at=min(event.sampled_at + clock_offset, latest),
            )
        case ResourcesMeasured():
            return msgspec.structs.replace(
                event,
                measured_at=min(event.measured_at + clock_offset, latest),
                host=member.hello.host,
            )
        case AgentInterrupted():
            return AgentInterrupted(
                signal=event.signal,
                interrupted_at=min(event.interrupted_at + clock_offset, latest),
                agent=number,
                host=member.hello.host,
            )
        case SnapshotTaken():
            return msgspec.structs.replace(
                event, taken_at=min(event.taken_at + clock_offset, latest)
            )
        case LockWaitsSampled():
            waits = [
                msgspec.structs.replace(w, waiter=process_key(number, w.waiter))
                for w in event.waits
            ]
            return LockWaitsSampled(waits=tuple(waits), agent=number)
        case MemberFactsReported():
            return MemberFactsReported(pid=process_key(number, event.pid), facts=event.facts)
        case CallsTraced():
            return msgspec.structs.replace(event, pid=process_key(number, event.pid))
        case StrangerConnected() if event.knock.kind in ("elsewhere", FORGED_KIND):
            knock = msgspec.structs.replace(
                event.knock, knocked_at=min(event.knock.knocked_at + clock_offset, latest)
            )
            return StrangerConnected(knock=knock)
    return None
