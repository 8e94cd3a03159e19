"""Evidence that is missing, with what it could have told; and the reason why nothing was found."""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.analysis.stacks.stack_classifier import is_peer_wait
from allaboard.diagnosis.logs.non_rank_processes import non_rank_lines, separate_ranks
from allaboard.diagnosis.logs.processes import Process
from allaboard.diagnosis.logs.run_folder import Run
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.facts import Crowd, Member, Outcome
from allaboard.facts.rank_sets import describe_ranks, name_ranks

PYSPY_JSON_HINT = "; py-spy dump --json prints one process, with --subprocesses too"
"""Hint for py-spy 0.4.3."""
_DUMP_TWICE = (
    "dump every rank twice, some seconds apart (py-spy dump --pid PID > RANK.txt), and give all files to "
    "allaboard diagnose"
)
MAX_WORLD_SIZE = 1_000_000
"""Ranks that are looked for; a file may state any number."""


def missing_ranks(
    runs: Sequence[Run], members: Sequence[Member], record: LogRecord, processes: Sequence[Process]
) -> list[str]:
    """Return sentences on ranks of which there is no evidence, by the world size that the others state."""
    if len(record.unranked_nodes) > 1:
        files = " and ".join(dict.fromkeys(record.unranked_nodes))
        return [
            f"the ranks in {files}: torchrun wrote only the rank on the node there, and nothing says "
            "which node is which"
        ]
    sizes = [m.declared.world_size for m in members if m.declared is not None]
    known_ranks = {m.who.rank for m in members if m.who.rank >= 0}
    sizes += [len(group) for group in record.groups.values()] + [h.size for h in record.heard]
    if not members:
        known_ranks |= {rank for rank in record.ranks if rank >= 0} | record.labelled
        known_ranks |= {p.who.rank for p in processes if p.who.rank >= 0}
    known_ranks |= {r.rank for r in record.recorded}
    if not sizes or not known_ranks:
        return []
    missing = sorted(set(range(min(max(sizes), MAX_WORLD_SIZE))) - known_ranks)
    if not missing or max(sizes) <= 1:
        return []
    pronoun = "it" if len(missing) == 1 else "them"
    unranked = [p for p in separate_ranks(processes)[0] if p.who.rank < 0]
    if unranked:
        return [
            f"{name_ranks(missing)} of {max(sizes)}: nothing here is known to belong to {pronoun}; it may be "
            f"{unranked[0].who.name}" + (" or another of unknown rank" if len(unranked) > 1 else "")
        ]
    hosts = ", ".join(sorted({r.host for r in runs if r.host}))
    hosts_clause = f" (only the ranks of {hosts})" if hosts else ""
    return [
        f"{name_ranks(missing)} of {max(sizes)}: there is no evidence of {pronoun} here{hosts_clause}. "
        "What is said of the other ranks holds, but a missing rank may be the cause"
    ]


def why_no_finding(
    runs: Sequence[Run],
    record: LogRecord,
    processes: Sequence[Process],
    crowds: Sequence[Crowd] = (),
) -> str:
    """Return the reason why there is no finding, as a sentence; ``crowds``: the places of the processes."""
    reports = [r.report for r in runs if r.report is not None]
    if reports and all(r.exit_code == 0 for r in reports):
        return "no finding: the run ended well"
    if reports and all(r.outcome in (Outcome.COMPLETED, Outcome.INTERRUPTED) for r in reports):
        return "no finding: a user interrupted the run, and until then nothing was wrong"
    if not record.names and not runs:
        return "no finding: there was nothing to read"
    ranks, non_ranks = separate_ranks(processes)
    if {p.number for p in non_ranks} & {p.number for p in ranks}:
        names = "; ".join(non_rank_lines(non_ranks))
        return (
            f"no finding: unknown, because no rank was dumped ({names}): dump the processes of the training "
            "script too" + ("" if any(p.command for p in processes) else PYSPY_JSON_HINT)
        )
    if len(crowds) == 1 and crowds[0].calls:
        return "no finding: " + _describe_one_place(
            crowds[0], any(is_peer_wait(p.stack) for p in ranks)
        )
    if crowds and all(crowd.calls for crowd in crowds):
        count = sum(crowd.count for crowd in crowds)
        return (
            f"no finding: the {count} dumped processes are at {len(crowds)} places, and none of these shows "
            f"for whom the others wait. If the job has more ranks, dump those; else {_DUMP_TWICE}"
        )
    known_count = len(record.names) - record.unknown_count
    evidence = "message, traceback, dump or trace of a fault"
    if record.has_traceback:
        evidence = "message, dump or trace of a fault, and no traceback that ended a process,"
    return (
        f"no finding: unknown, because there is no known {evidence} in "
        f"what was read ({len(record.names)} files, {known_count} of a known kind); a job that hangs "
        "silently leaves none: diagnose its PIDs while it hangs"
    )


def _describe_one_place(crowd: Crowd, waits_for_peers: bool) -> str:
    """Return where all dumped processes are, what that does not show, and which dumps would."""
    who = describe_ranks(crowd.ranks, crowd.count - len(crowd.others), crowd.others)
    place = f" at {crowd.at}" if crowd.at else ""
    call = f", in {crowd.inside}" if crowd.inside else ""
    begin = f"{who} {'is' if crowd.count == 1 else 'are'} {crowd.doing}{place}{call}"
    if not waits_for_peers:
        return f"{begin}. Whether it stays there is not shown by one dump: {_DUMP_TWICE}"
    if crowd.count == 1:
        return (
            f"{begin}, where it waits for the other ranks. It is not shown whether it hangs there, nor for "
            f"whom: {_DUMP_TWICE}"
        )
    return (
        f"{begin}, all at one place: nobody waits for one of these. If the job has more ranks, dump those. "
        "If these are all, they move on (a second dump shows another place) or the network between them does "
        "not answer (allaboard preflight tests it)"
    )
