"""What is not there, and what it could have told; and why nothing was found."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.diagnosis.logs.non_rank_processes import apart, said
from allaboard.diagnosis.logs.processes import Process
from allaboard.diagnosis.logs.run_folder import Run
from allaboard.diagnosis.logs.run_readers import Record
from allaboard.facts import Member, Outcome
from allaboard.facts.rank_sets import format_ranks

JSON = "; py-spy dump --json prints one process, with --subprocesses too"
"""Of the release 0.4.3."""
LARGEST = 1_000_000
"""Ranks that are looked for; what is read may say any number."""


def absent(
    runs: Sequence[Run], members: Sequence[Member], record: Record, found: Sequence[Process]
) -> list[str]:
    """Ranks of which nothing is here, by what those that are here were told."""
    if len(record.nodes) > 1:
        files = " and ".join(dict.fromkeys(record.nodes))
        return [
            f"the ranks in {files}: torchrun wrote the number on the node alone there, and nothing "
            "tells which node is which"
        ]
    sizes = [m.declared.world_size for m in members if m.declared is not None]
    seen = {m.who.rank for m in members if m.who.rank >= 0}
    sizes += [len(one) for one in record.groups.values()] + [h.size for h in record.heard]
    if not members:
        seen |= {rank for rank in record.logs if rank >= 0} | record.labelled
        seen |= {p.who.rank for p in found if p.who.rank >= 0}
    seen |= {r.rank for r in record.recorded}
    if not sizes or not seen:
        return []
    gone = sorted(set(range(min(max(sizes), LARGEST))) - seen)
    if not gone or max(sizes) <= 1:
        return []
    unnamed = [p for p in apart(found)[0] if p.who.rank < 0]
    if unnamed:
        return [
            f"rank {format_ranks(gone)} of {max(sizes)}: nothing here is known to be of it; it may be "
            f"{unnamed[0].who.name}" + (" or another of unknown rank" if len(unnamed) > 1 else "")
        ]
    hosts = ", ".join(sorted({r.host for r in runs if r.host}))
    whose = f"; here are those of {hosts}" if hosts else ""
    return [
        f"rank {format_ranks(gone)} of {max(sizes)}: nothing of it is here{whose}. What is said of the others "
        "holds; who of these is the cause cannot be told"
    ]


def why_none(runs: Sequence[Run], record: Record, seen: Sequence[Process]) -> str:
    """Why there is no finding, as a sentence."""
    ended = [r.report for r in runs if r.report is not None]
    if ended and all(r.exit_code == 0 for r in ended):
        return "no finding: the run ended well"
    if ended and all(r.outcome in (Outcome.COMPLETED, Outcome.INTERRUPTED) for r in ended):
        return "no finding: somebody interrupted the run, and until then nothing was wrong"
    if not record.read and not runs:
        return "no finding: there was nothing to read"
    ranks, beside = apart(seen)
    if {p.number for p in beside} & {p.number for p in ranks}:
        names = "; ".join(said(beside))
        return (
            f"no finding: unknown, because no rank was dumped ({names}): dump those of the training script "
            "too" + ("" if any(p.command for p in seen) else JSON)
        )
    knew = len(record.read) - record.silent
    return (
        f"no finding: unknown, because no known message, traceback, dump or trace of a fault is in "
        f"what was read ({len(record.read)} files, {knew} of a known kind); a job that hangs in silence "
        "leaves none: diagnose its pids while it hangs"
    )
