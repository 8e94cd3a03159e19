"""Inspection of running processes on this host that allaboard did not start, from outside only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import msgspec

from allaboard import __version__
from allaboard.analysis.failures.killed_child import PRINTED_FAILURE_NOTE
from allaboard.analysis.failures.printed_failure import find_printed_failure
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stalls.stall import JITTED_NOTE
from allaboard.clock import SystemClock
from allaboard.configuration import resolve
from allaboard.coordinator.process_record import ProcessRecord
from allaboard.diagnosis.live.exited_processes import final_exceptions, find_departed
from allaboard.diagnosis.live.process_probes import stated_arguments
from allaboard.diagnosis.live.starvation import has_run_in_wait, is_busy_in_place, is_starved
from allaboard.diagnosis.live.target_selection import redacted_command
from allaboard.facts import ATTACHED, Awaited, HostLook, Phase, Present, Stack
from allaboard.facts.configuration.source_variables import CLUSTER_VARIABLES
from allaboard.formats.dumps.process_roles import program_name
from allaboard.formats.dumps.thread_dumps.stated_identity import parse_frames_with_locals
from allaboard.hosts import proc, rank_processes
from allaboard.hosts.awaited.blocked_time import blocked_time
from allaboard.hosts.awaited.output_file import read_output_tail
from allaboard.hosts.awaited.peers import awaited_peers, connected_peers
from allaboard.hosts.file_locks import lock_waits
from allaboard.hosts.loaded_framework import loaded_framework
from allaboard.hosts.process_sockets import (
    listening_addresses,
    network_of,
    own_addresses,
    process_sockets,
)
from allaboard.hosts.socket_bytes import socket_bytes
from allaboard.hosts.thread_stats import queue_times
from allaboard.launch.fork_server_link import WARM_VARIABLE
from allaboard.protocol.events import ProcessSampled, StackSampled
from allaboard.sampling import pyspy, stack_sampler
from allaboard.sampling.gil_sampler import GilSampler
from allaboard.sampling.jitted_calls import calls_jitted
from allaboard.sampling.loader_sampler import LoaderSampler

SAMPLE_COUNT = 5
"""Samples of each process."""
BUSY_SAMPLE_COUNT = 7
"""Samples if a process computes at one place: a loop without an end takes more of them to be told."""
SAMPLE_INTERVAL_S = 0.4
"""Seconds between two samples: a place that is the same in all of them counts as still."""
MAX_STARVED_S = 12.0
"""Seconds for which processes are sampled that lack a core, until they have run for long enough."""
STARVED_INTERVAL_S = 1.0
"""Seconds between two of those samples: the sampler itself takes part of the cores that are missing."""


def inspect_processes(
    pids: Sequence[int], targets: Sequence[str] = (), siblings: Sequence[int] = ()
) -> HostLook:
    """Return several samples of all processes, which are not paused; with those of the ``targets`` that have
    ended. ``siblings``: those of the pids that nobody named."""
    departed = find_departed([int(t) for t in dict.fromkeys(targets) if t.isdecimal()])
    return msgspec.structs.replace(
        asyncio.run(inspect_in_loop(pids)), departed=departed, siblings=tuple(siblings)
    )


async def inspect_in_loop(pids: Sequence[int]) -> HostLook:
    """Return what `inspect_processes` does, inside a running loop."""
    clock = SystemClock()
    start = clock.monotonic()
    host = os.uname().nodename
    variables = {p: rank_processes.relevant_environment(p) for p in pids}
    initial = {p: proc.initial_environment(p) for p in pids}
    spied = await asyncio.gather(*(pyspy.spy_with_locals(p) for p in pids))
    arguments = {
        p: stated_arguments(parse_frames_with_locals(output, p), proc.command_line(p), variables[p])
        for p, output in zip(pids, spied, strict=True)
    }
    records = {
        p: ProcessRecord(p, i, host, start, resolve({**variables[p], **arguments[p]}).rank)
        for i, p in enumerate(pids)
    }
    bytes_at_start = {p: socket_bytes([p]) for p in pids}
    troubles: dict[int, str] = {}
    grips = GilSampler(pyspy.spy_threads)
    loaders = LoaderSampler(pyspy.spy_with_source)
    times_at_start = {p: queue_times(p) for p in pids}
    sampled_at = first_sampled_at = clock.monotonic()
    starved: set[int] = set()
    number = 0
    busy = False
    while (
        number < SAMPLE_COUNT
        or (starved and sampled_at - first_sampled_at < MAX_STARVED_S)
        or (busy and number < BUSY_SAMPLE_COUNT)
    ):
        now = clock.monotonic()
        if number:
            interval_s = STARVED_INTERVAL_S if starved else SAMPLE_INTERVAL_S
            await asyncio.sleep(max(0.0, sampled_at + interval_s - now))
            now = clock.monotonic()
        number += 1
        sampled_at = now
        # Side by side: the places of the ranks are compared, and belong to about one moment.
        samples = await asyncio.gather(
            *(
                stack_sampler.sample_or_reason(p, None, now, grips=grips, loaders=loaders)
                for p in pids
            )
        )
        for pid, (sample, trouble) in zip(pids, samples, strict=True):
            _record_sample(records[pid], sample)
            # One sample that fails (py-spy reads while the process runs on) does not undo the others.
            troubles[pid] = "" if sample.frames else troubles.get(pid, trouble)
        span_s = clock.monotonic() - first_sampled_at
        starved = {p for p in pids if is_starved(times_at_start[p], queue_times(p), span_s)}
        starved = starved if number >= SAMPLE_COUNT else set()
        busy = any(is_busy_in_place(records[p].to_member(False)) for p in pids)
    frameworks = {p: loaded_framework(p) for p in pids}
    raised = final_exceptions(
        {p: records[p].to_member(False).stack for p in pids},
        {p: records[p].to_member(False).who.rank for p in pids},
        frameworks,
        start,
    )
    one_per_network = {network_of(p): p for p in pids}.values()
    return HostLook(
        host=host,
        now=clock.monotonic(),
        allaboard=__version__,
        present=tuple(
            Present(
                member=msgspec.structs.replace(
                    records[p].to_member(False),
                    phase=Phase.TRAINING,
                    raised=raised.get(p),
                    notes={
                        ATTACHED: "1",
                        **_jitted_note(records[p].to_member(False).stack),
                        **_printed_failure_note(p, records[p].to_member(False).stack),
                    },
                    framework=frameworks[p],
                    traffic=max(0, socket_bytes([p]) - bytes_at_start[p])
                    / max(clock.monotonic() - start, SAMPLE_INTERVAL_S),
                ),
                command=redacted_command(p),
                variables=variables[p],
                set_by_program=tuple(
                    n
                    for n, v in variables[p].items()
                    if n in CLUSTER_VARIABLES
                    and initial[p].get(n) != v
                    # A process forked by `run --warm` got them after its start, from its launcher.
                    and WARM_VARIABLE not in initial[p]
                ),
                arguments={n: v for n, v in arguments[p].items() if variables[p].get(n) != v},
                sockets=process_sockets(p, with_silence=True),
                awaits=_with_programs(awaited_peers(p)),
                connected=_with_programs(connected_peers(p))
                if classify_stack(records[p].to_member(False).stack) is Spot.ANSWER
                else (),
                why=troubles[p],
                blocked_s=blocked_time(p),
                steps_on=has_run_in_wait(
                    records[p].to_member(False).stack,
                    times_at_start[p].get(p),
                    queue_times(p).get(p),
                ),
                starved=p in starved,
            )
            for p in pids
        ),
        lock_waits=lock_waits(members=pids),
        listeners=tuple(dict.fromkeys(a for p in one_per_network for a in listening_addresses(p))),
        addresses=tuple(dict.fromkeys(a for p in one_per_network for a in own_addresses(p))),
    )


def _jitted_note(stack: Stack | None) -> dict[str, str]:
    """Return the line at which a program is in native code and calls its own jitted function."""
    leaf = stack.frames[0] if stack is not None and stack.frames else None
    if leaf is None or not leaf.is_user or not calls_jitted(leaf):
        return {}
    return {JITTED_NOTE: f"{leaf.file}:{leaf.line}"}


def _printed_failure_note(pid: int, stack: Stack | None) -> dict[str, str]:
    """Return which process of a program has printed that it failed, if the program may wait for that one."""
    if classify_stack(stack) not in (Spot.ANSWER, Spot.CHILD, Spot.LOCK):
        return {}
    failure = find_printed_failure(read_output_tail(pid))
    return {PRINTED_FAILURE_NOTE: failure} if failure else {}


def _with_programs(peers: Sequence[Awaited]) -> tuple[Awaited, ...]:
    """Return them with what the processes at their other ends run."""
    return tuple(
        msgspec.structs.replace(
            peer,
            programs=tuple(program_name(" ".join(redacted_command(h)))[:60] for h in peer.pids),
        )
        for peer in peers
    )


def _record_sample(record: ProcessRecord, sample: StackSampled) -> None:
    stat = proc.read_stat(sample.pid)
    if stat is None:
        return
    record.add_sample(
        ProcessSampled(
            pid=sample.pid,
            worker=record.worker,
            sampled_at=sample.sampled_at,
            state=stat.state,
            cpu=stat.cpu_s,
            # In D alone: it tells one long wait from many short ones.
            sleeps=proc.count_voluntary_switches(sample.pid) if stat.state == "D" else 0,
        )
    )
    record.add_stack(sample)
