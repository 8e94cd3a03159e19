"""What is shown of each live process, for a person. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from allaboard.analysis.collectives.queued_calls import reads_device_value
from allaboard.analysis.resources.resource_forecast import format_duration
from allaboard.analysis.stacks.stack_classifier import is_peer_wait
from allaboard.analysis.stalls.examined_duration import silence_between
from allaboard.analysis.stalls.lock_kind import describe_wait
from allaboard.analysis.stalls.stall import is_settled_stack
from allaboard.facts import Member, Present

MAX_SHOWN_MEMBERS = 32
"""Members that are listed one by one."""
MIN_SHOWN_SILENCE_S = 10.0
"""Seconds without data between the ranks from which this is shown."""
MAX_SHOWN_SOCKETS = 6
"""Sockets of one state that are shown for a member."""
SHOWN_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG",
         "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS", "SLURM_PROCID",
         "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")  # fmt: skip
"""Environment variables that are shown for a member."""


def process_lines(
    ranks: Sequence[Present], elsewhere: Mapping[tuple[str, str], str] | None = None
) -> Iterator[str]:
    """Yield lines on each process: where it is, what states its place in the job, whom it is connected to.

    ``elsewhere``: names of processes of other worlds, by both ends of their connections.
    """
    owners = {
        (s.local, s.remote): p.member
        for p in ranks
        for s in p.sockets
        if s.state == "ESTAB"
    }  # fmt: skip
    for process in ranks[:MAX_SHOWN_MEMBERS]:
        yield _member_line(process)
        variables = " ".join(
            f"{n}={process.variables[n]}" for n in SHOWN_VARIABLES if n in process.variables
        )
        set_by_program = [n for n in SHOWN_VARIABLES if n in process.set_by_program]
        if variables:
            program = f", set by the program: {' '.join(set_by_program)}" if set_by_program else ""
            yield f"  environment: {variables[:300]}{program}"
        if process.arguments:
            stated = " ".join(f"{n}={v}" for n, v in process.arguments.items())
            is_local_rank = "RANK" in process.arguments and "NODE_RANK" in process.variables
            source = "LOCAL_RANK on the first node" if is_local_rank else "its arguments"
            yield f"  by {source}: {stated[:300]}"
        sockets = "; ".join(_socket_clauses(process, owners, elsewhere or {}))
        if sockets:
            yield f"  {sockets}"
    waits = any(is_peer_wait(p.member.stack) for p in ranks)
    silence_s = silence_between(ranks) if waits else 0.0
    if silence_s >= MIN_SHOWN_SILENCE_S:
        yield f"no data has passed between these ranks for {format_duration(silence_s)}"
    if len(ranks) > MAX_SHOWN_MEMBERS:
        yield f"and {len(ranks) - MAX_SHOWN_MEMBERS} more (--format json has them all)"


def _member_line(process: Present) -> str:
    member = process.member
    user_frame = member.stack.user if member.stack is not None else None
    location = f" at {user_frame}" if user_frame is not None else ""
    doing = describe_wait(member.stack)
    if is_settled_stack(member.stack) and reads_device_value(member.stack):
        doing = "waiting for a result of its GPU"
    if member.is_stopped:
        doing = "stopped"
    if member.stack is None:
        doing = f"no stack ({process.why or 'unknown'})"
    return f"{member.who}: {doing}{location}, {member.cpu * 100:.0f} % of a core"


def _socket_clauses(
    process: Present,
    owners: Mapping[tuple[str, str], Member],
    elsewhere: Mapping[tuple[str, str], str],
) -> Iterator[str]:
    """Yield where the process listens, whom it has no answer from, whom it is connected to."""
    by_state: dict[str, list[str]] = {}
    for socket in process.sockets:
        peer = owners.get((socket.remote, socket.local))
        name = socket.local if socket.state == "LISTEN" else socket.remote
        name = elsewhere.get((socket.remote, socket.local), name)
        if peer is not None:
            name = f"rank {peer.who.rank}" if peer.who.rank >= 0 else f"pid {peer.who.pid}"
            if peer.who.job != "worker" or process.member.who.job != "worker":
                name = peer.who.name
        if socket.state == "LISTEN" and socket.unread:
            name += f" ({socket.unread} not accepted)"
        by_state.setdefault(socket.state, []).append(name)
    phrases = {
        "LISTEN": "listens on",
        "SYN-SENT": "has no answer yet (SYN-SENT) from",
        "ESTAB": "is connected to",
        "CLOSE-WAIT": "has lost its connection (CLOSE-WAIT) to",
    }
    for state, phrase in phrases.items():
        names = Counter(by_state.get(state, ()))
        if names:
            shown_names = [
                f"{n} ×{c}" if c > 1 else n for n, c in list(names.items())[:MAX_SHOWN_SOCKETS]
            ]
            more = (
                f" and {len(names) - MAX_SHOWN_SOCKETS} more"
                if len(names) > MAX_SHOWN_SOCKETS
                else ""
            )
            yield f"{phrase} {', '.join(shown_names)}{more}"
