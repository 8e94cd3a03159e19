"""Samples of one process's stack since it last moved, and what they show together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import msgspec

from allaboard.analysis.stacks.stack_classifier import is_same_place, trim_state_queries
from allaboard.facts import Frame, Stack
from allaboard.protocol.events import StackSampled

MAX_STACK_SAMPLES = 24
"""Samples at one place that are kept."""
HELD_LOCK_SAMPLES = 3
"""Samples for which a lock that was seen to be held counts as held: on a host that is full not every sample
shows how the other threads wake up for it."""


class StackSamples:
    """The samples, oldest first. There is one at least before anything is asked of them."""

    __slots__ = ("_samples", "_shown_stack")

    def __init__(self) -> None:
        self._samples: list[StackSampled] = []
        self._shown_stack: tuple[StackSampled, Stack] | None = None
        """The newest sample, and what was worked out when it came."""

    def add_sample(self, sample: StackSampled) -> None:
        """Add the newest sample; the oldest is forgotten if there are too many."""
        self._samples.append(
            msgspec.structs.replace(
                sample,
                frames=trim_state_queries(sample.frames),
                input_frames=trim_state_queries(sample.input_frames),
            )
        )
        del self._samples[:-MAX_STACK_SAMPLES]

    @property
    def cores(self) -> float | None:
        """Cores that the process used between the samples; None if there is only one."""
        return self.rate(lambda sample: sample.cpu) if len(self._samples) > 1 else None

    def rate(self, total: Callable[[StackSampled], float]) -> float:
        """Return the growth of a total per second; 0 if there is only one sample."""
        if len(self._samples) < 2:
            return 0.0
        oldest, newest = self._samples[0], self._samples[-1]
        span = newest.sampled_at - oldest.sampled_at
        return max(0.0, total(newest) - total(oldest)) / span if span > 0 else 0.0

    def to_stack(self) -> Stack:
        """Return what the samples show; worked out once until there is another one."""
        newest = self._samples[-1]
        if self._shown_stack is None or self._shown_stack[0] is not newest:
            self._shown_stack = newest, self._stack_of_samples(newest)
        return self._shown_stack[1]

    def _stack_of_samples(self, newest: StackSampled) -> Stack:
        samples = self._samples
        lines = len({_innermost_line(s.frames) for s in samples})
        # A loop that waits has a line or two. Among few samples three lines may be three of many: of eight
        # lines, twelve samples show no more than three in one of 2,000 cases, nine in one of 120.
        is_wandering = lines > 3 or (lines > 2 and lines * 4 > len(samples))
        input_frames = next((s.input_frames for s in reversed(samples) if s.input_frames), ())
        at_same_place = list(
            takewhile(lambda s: is_same_place(newest.frames, s.frames), reversed(samples))
        )
        still_functions = tuple(
            f
            for f in newest.rpc_functions
            if all(any(is_same_place(f, g) for g in s.rpc_functions) for s in samples)
        )
        held_locks = (s.grip for s in reversed(samples[-HELD_LOCK_SAMPLES:]) if s.grip)
        return Stack(
            frames=newest.frames,
            taken_at=newest.sampled_at,
            samples=len(samples),
            span=newest.sampled_at - samples[0].sampled_at,
            moving=is_wandering or len(at_same_place) < len(samples),
            stays=newest.sampled_at - at_same_place[-1].sampled_at,
            by=newest.by,
            children=newest.children,
            stopped=tuple(
                (pid, newest.sampled_at - _stopped_since(pid, samples)) for pid in newest.stopped
            ),
            threads=newest.threads,
            other_thread_frames=tuple(
                f for f in newest.other_threads if all(f in s.other_threads for s in samples)
            ),
            blocked=newest.blocked_call,
            grip=next(held_locks, None),
            fed_by=input_frames,
            loaders=next((s.loaders for s in reversed(samples) if s.loaders), ()),
            lone_waiters=next((s.lone_waiters for s in reversed(samples) if s.loaders), ()),
            blocked_pool=newest.blocked_pool
            if all(s.blocked_pool == newest.blocked_pool for s in samples[-3:])
            else 0,
            flows=any(not is_same_place(input_frames, s.input_frames) for s in samples),
            asks=newest.asks_other_process,
            rpc_functions=still_functions,
            polling_cores=self.rate(lambda sample: sample.polling_cpu),
            moving_rpc_functions=max(len(s.rpc_functions) for s in samples) - len(still_functions),
            awaited_pids=newest.awaited_pids,
            awaited_end=newest.awaited_end
            if all(s.awaited_end == newest.awaited_end for s in samples[-2:])
            else "",
            unread_child=newest.unread_child
            if all(s.unread_child == newest.unread_child for s in samples[-3:])
            else 0,
            loops=newest.loops,
            failed=tuple(f for f in newest.failed if all(f in s.failed for s in samples[-3:])),
            idle_pool=_idle_pool(samples),
        )


def _idle_pool(samples: list[StackSampled]) -> int:
    counts = [s.idle_pool for s in samples if s.idle_pool is not None][-2:]
    return counts[-1] if len(counts) == 2 and all(counts) else 0


def _innermost_line(frames: tuple[Frame, ...]) -> tuple[str, int]:
    return frames[0].file, frames[0].line


def _stopped_since(pid: int, samples: list[StackSampled]) -> float:
    """Return the time of the first sample from which on the process was stopped: the kernel does not say
    since when it is."""
    return [s.sampled_at for s in takewhile(lambda s: pid in s.stopped, reversed(samples))][-1]
