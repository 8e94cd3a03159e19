"""One answer for processes of one host or of several: which ranks wait where, and for which others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from allaboard import __version__
from allaboard.diagnosis.live.awaited_processes import with_only_peer
from allaboard.diagnosis.live.exited_processes import describe_departed
from allaboard.diagnosis.live.offered_services import service_lines
from allaboard.diagnosis.live.process_lines import MAX_SHOWN_MEMBERS, process_lines
from allaboard.diagnosis.live.rank_filter import filter_ranks
from allaboard.diagnosis.live.several_worlds import diagnose_side_by_side
from allaboard.diagnosis.live.tensorflow_tasks import name_tasks
from allaboard.diagnosis.live.unranked_names import name_unranked
from allaboard.diagnosis.live.world_diagnosis import diagnose_world
from allaboard.diagnosis.live.worlds import divide_worlds
from allaboard.facts import Diagnosis, HostLook, Present
from allaboard.protocol.process_keys import process_key as key_of


def diagnose_processes(
    looks: Sequence[HostLook], look_count: int = 1, unchanged_s: float = 0.0
) -> Diagnosis:
    """Return the findings of all rules on the job of these processes and on their environments, and what is
    missing. Worlds of ranks that run side by side are judged each by itself.

    ``look_count``: how often the processes were looked at, of which these looks are the last.
    ``unchanged_s``: for how long they are known to have stood where these looks find them.
    """
    all_present = list(_all_present(looks))
    ranks, non_rank_lines = filter_ranks(all_present)
    ranks = sorted(name_unranked(name_tasks(ranks)), key=_display_order)
    ranks = [with_only_peer(p, ranks) for p in ranks]
    worlds = divide_worlds(ranks)
    if len(worlds) > 1:
        diagnosis = diagnose_side_by_side(looks, worlds, look_count, unchanged_s)
    else:
        diagnosis = msgspec.structs.replace(
            diagnose_world(looks, ranks, look_count, unchanged_s=unchanged_s),
            told=tuple(process_lines(ranks)),
        )
    departed_lines = [describe_departed(d, look.host) for look in looks for d in look.departed]
    unreachable = [f"{look.host}: {look.trouble}" for look in looks if look.trouble]
    return msgspec.structs.replace(
        diagnosis,
        allaboard=__version__,
        read=tuple(f"pid {p.member.who.pid} of {p.member.who.host}" for p in all_present),
        told=(
            *diagnosis.told,
            *departed_lines,
            *_sibling_lines(looks, all_present),
            *service_lines(ranks, looks[0].host if looks else ""),
        ),
        beside=non_rank_lines,
        missing=(*unreachable, *diagnosis.missing),
        notes=tuple(f"pid {p.member.who.pid}: no stack: {p.why}" for p in ranks if p.why),
    )


def _sibling_lines(looks: Sequence[HostLook], present: Sequence[Present]) -> Iterator[str]:
    """Yield the processes that were examined though nobody named them."""
    siblings = sorted({pid for look in looks for pid in look.siblings})
    if siblings and len(siblings) < len(present):
        shown = ", ".join(map(str, siblings[:MAX_SHOWN_MEMBERS]))
        yield f"examined too, as they belong to the same job: pid{'s' * (len(siblings) > 1)} {shown}"


def _display_order(process: Present) -> tuple[bool, int]:
    rank = process.member.who.rank
    return rank < 0, rank


def _all_present(looks: Sequence[HostLook]) -> Iterator[Present]:
    """Yield all processes with one clock and one numbering: pids and clocks of two hosts are unrelated."""
    worker = 0
    for host_number, look in enumerate(looks):
        clock_offset = looks[0].now - look.now
        for process in look.present:
            member, stack = process.member, process.member.stack
            if stack is not None:
                stack = msgspec.structs.replace(
                    stack,
                    taken_at=stack.taken_at + clock_offset,
                    # Who gets no core stands at one place whatever it does.
                    moving=stack.moving or process.starved or process.steps_on,
                )
            shifted = msgspec.structs.replace(
                member,
                key=key_of(host_number, member.who.pid),
                worker=worker,
                phase_since=member.phase_since + clock_offset,
                moved_at=member.moved_at + clock_offset,
                os_state_since=member.os_state_since + clock_offset,
                stack=stack,
            )
            worker += 1
            yield msgspec.structs.replace(process, member=shifted)
