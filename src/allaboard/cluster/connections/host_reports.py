"""What a follower reports of its host: news at once, and the newest state again after a reconnect."""

from __future__ import annotations

import time
from collections.abc import Iterable

from allaboard.cluster.transport import wire
from allaboard.cluster.transport.wire import HostEvents
from allaboard.facts import LockWait, Phase
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

REPEAT_INTERVAL_S = 1.0
"""Seconds after which an unchanged state of a member is sent again."""


class HostReports:
    """The events of one host, for whichever leader is connected."""

    def __init__(self) -> None:
        self._last_markers: dict[int, tuple[object, float]] = {}
        """The state of each process as last sent, and when (s)."""
        self._fact_reports: dict[int, MemberFactsReported] = {}
        self._samples: dict[int, ProcessSampled] = {}
        self._exits: dict[int, ProcessExited] = {}
        self._strays: dict[str, StrangerConnected] = {}
        self._interruptions: list[AgentInterrupted] = []
        self._unsent: list[Event] = []
        self._sent_with_hello: dict[int, Event] = {}
        """Events that were sent with Hello, by id(); the reference keeps an id from being used again."""
        self._lock_waits: tuple[LockWait, ...] = ()
        """Waits for file locks, as last sent."""

    @property
    def has_unsent(self) -> bool:
        """True if the leader that is connected has not got all events of the time before."""
        return bool(self._unsent)

    @property
    def has_waiting_member(self) -> bool:
        """True if a member waits at the gate."""
        return any(e.box and e.box.phase == Phase.ARRIVED for e in self._samples.values())

    @property
    def has_started_member(self) -> bool:
        """True if a member is through the gate, or was never held there."""
        return any(e.box and e.box.phase > Phase.ARRIVED for e in self._samples.values())

    def is_at_gate(self, pid: int, round_: int) -> bool:
        """Return True if this process was seen, and at no gate of a later round."""
        sample = self._samples.get(pid)
        return sample is not None and sample.box is not None and sample.box.round <= round_

    def add_events(self, events: Iterable[Event]) -> None:
        """Remember the newest state of everything, for the next Hello."""
        self._fact_reports |= {e.pid: e for e in events if isinstance(e, MemberFactsReported)}
        # The newest of each process only: a leader may be away for hours.
        self._samples |= {e.pid: e for e in events if isinstance(e, ProcessSampled)}
        self._exits |= {e.pid: e for e in events if isinstance(e, ProcessExited)}
        self._interruptions += [e for e in events if isinstance(e, AgentInterrupted)]
        self._strays |= {
            e.knock.peer: e for e in events if isinstance(e, StrangerConnected) and _is_stray(e)
        }

    def add_forgery(self, address: str, event: StrangerConnected) -> None:
        """Remember that something has written on the connection to the leader at this address."""
        self._strays[f"{address} {event.knock.kind}"] = event

    def encode_past_events(self) -> bytes:
        """Return all that is known now as frames to send with Hello: saves a round trip while many hosts
        wait."""
        self._sent_with_hello = {id(e): e for e in self._past_events()}
        if not self._sent_with_hello:
            return b""
        return wire.encode_frame(
            HostEvents(events=tuple(self._sent_with_hello.values()), mono=time.monotonic())
        )

    def begin_stream(self) -> None:
        """Count everything as new again: the new leader, or the same one after a broken stream, knows nothing
        of what was sent before it was connected."""
        self._last_markers.clear()
        self._lock_waits = ()
        # What happened between Hello and Welcome is sent with the next tick.
        self._unsent = [e for e in self._past_events() if id(e) not in self._sent_with_hello]
        self._sent_with_hello = {}

    def encode_news(self, now: float, events: list[Event]) -> bytes:
        """Return those of these events that the leader needs now as a frame; b"" if there are none."""
        news = tuple(self._unsent) + tuple(e for e in events if self._is_news(now, e))
        self._unsent = []
        return wire.encode_frame(HostEvents(events=news, mono=time.monotonic())) if news else b""

    def _past_events(self) -> list[Event]:
        """Return what happened before there was a connection: the newest event of each kind and process."""
        happened: list[Event] = [*self._samples.values(), *self._fact_reports.values()]
        return [*happened, *self._interruptions, *self._exits.values(), *self._strays.values()]

    def _is_news(self, now: float, event: Event) -> bool:
        match event:
            # Processes are sampled several times a second on every host: a leader of thousands needs less.
            case ProcessSampled():
                box = event.box
                marker = event.state, box and (
                    box.phase, box.round, box.step, box.ops, box.op is None, box.raised is None
                )  # fmt: skip
                previous, sent_at = self._last_markers.get(event.pid, (None, 0.0))
                if (
                    previous == marker or _is_minor_change(previous, marker)
                ) and now - sent_at < REPEAT_INTERVAL_S:
                    return False
                self._last_markers[event.pid] = marker, now
                return True
            case (
                ProcessExited()
                | StackSampled()
                | TrafficSampled()
                | MemberFactsReported()
                | CallsTraced()
                | ResourcesMeasured()
                | SnapshotTaken()
            ):
                return True
            case AgentInterrupted():
                return True
            case LockWaitsSampled():
                # An empty list is news once: it says that nobody waits any more.
                previous, self._lock_waits = self._lock_waits, event.waits
                return event.waits != previous
            case StrangerConnected():
                return _is_stray(event)
        return False


def _is_stray(event: Event) -> bool:
    """Return True if this is a member that connected to this host instead of to the leader."""
    return isinstance(event, StrangerConnected) and event.knock.kind == "elsewhere"


def _is_minor_change(previous: object, current: object) -> bool:
    """Return True if only steps and operations advanced: those are sent every `REPEAT_INTERVAL_S`."""
    if not isinstance(previous, tuple) or not isinstance(current, tuple):
        return False
    previous_box, current_box = previous[1], current[1]
    if previous_box is None or current_box is None:
        return False
    return bool(
        previous[0] == current[0]
        and previous_box[:2] == current_box[:2]
        and previous_box[5] == current_box[5]
    )
