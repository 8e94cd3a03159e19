"""`allaboard diagnose PATH…`: run folders and what others left, in one answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from allaboard import __version__
from allaboard.analysis.stacks.groups import StackGroups
from allaboard.analysis.stacks.places import group_member_stacks, make_crowds
from allaboard.analysis.stacks.stack_classifier import classify_stack
from allaboard.analysis.stacks.tree import merge_stacks
from allaboard.diagnosis.logs import log_diagnosis, run_folder
from allaboard.diagnosis.logs.foreign_files import owned
from allaboard.diagnosis.logs.input_files import MissingInputError, exhibits
from allaboard.diagnosis.logs.kernel_filesystems import of_the_kernel, why_not
from allaboard.diagnosis.logs.missing_evidence import absent, why_none
from allaboard.diagnosis.logs.non_rank_processes import apart, said
from allaboard.diagnosis.logs.processes import processes
from allaboard.diagnosis.logs.rank_identification import taken_for_one
from allaboard.diagnosis.logs.run_folder import Run
from allaboard.diagnosis.logs.run_readers import Record, take
from allaboard.facts import (
    Diagnosis,
    Dumps,
    Finding,
    Glimpse,
    JobView,
    Member,
    Outcome,
    Place,
    Severity,
)
from allaboard.formats import redaction
from allaboard.rules.engine.catalogue import Catalogue
from allaboard.rules.engine.relations import (
    declared_relations,
    may_join_run,
    without_interruption,
)

PARTS = ("journal.jsonl", "report.json", "logs", "snapshot")
"""What allaboard itself leaves in a run's folder."""
MEMBERS = 16
"""Members that are told one by one."""


def of_paths(paths: Sequence[Path], catalogue: Catalogue) -> Diagnosis:
    """Everything that these files and folders tell. Raises MissingInputError, with the sentence to print."""
    notes: list[str] = []
    runs, others = _sorted(paths)
    notes += _foreign(paths) + _passed_over(paths, runs)
    logs = [f for r in runs for f in r.logs.values()]
    record = take(exhibits([*logs, *others], notes), notes)
    _launchers(runs, record)
    record.glimpses += _pids(runs, record)
    from_logs = log_diagnosis.findings(record, catalogue)
    own = [f for r in runs for f in r.findings]
    known = {f.rule for f in own}
    serious = any(f.severity is Severity.ERROR for f in own)
    if any(r.report is not None and r.report.outcome is Outcome.INTERRUPTED for r in runs):
        from_logs = without_interruption(from_logs, declared_relations(catalogue.entries))
    added = [f for f in from_logs if not serious or (may_join_run(f.rule) and f.rule not in known)]
    members = [m for r in runs if r.view is not None for m in r.view.members]
    seen = processes(record.glimpses, len(record.nodes) < 2)
    dumps = log_diagnosis.dumps(seen)
    notes += taken_for_one(g for p in seen for g in p.seen)
    groups = group_member_stacks(members) if members else _groups(dumps)
    findings = tuple(_unique([*own, *added]))
    lacks = [f"{r.folder}: {what}" if len(runs) > 1 else what for r in runs for what in r.lacks]
    return Diagnosis(
        allaboard=__version__,
        read=tuple([str(r.folder) for r in runs] + [str(p) for p in others]),
        told=tuple(line for r in runs for line in _course(r)),
        crowds=make_crowds(groups, dumps.unnamed) if any(g.frames for g in groups) else (),
        tree=merge_stacks(groups, dumps.unnamed),
        beside=said(apart(seen)[1]),
        findings=findings,
        missing=tuple(lacks + absent(runs, members, record, seen)),
        notes=tuple(notes),
        conclusion="" if findings else why_none(runs, record, seen),
    )


def _sorted(paths: Sequence[Path]) -> tuple[list[Run], list[Path]]:
    runs: list[Run] = []
    others: list[Path] = []
    for path in paths:
        if not path.exists():
            raise MissingInputError(f"{path}: no such file, folder or process")
        if of_the_kernel(path):
            raise MissingInputError(why_not(path))
        inner = [path] if run_folder.is_run(path) else []
        if not inner and path.is_dir():
            inner = [p for p in sorted(path.iterdir()) if _is_run(p)]
        if not inner:
            others.append(path)
        runs += [run_folder.read(p) for p in inner]
    jobs = {r.job for r in runs if r.job}
    if len(jobs) > 1:
        named = ", ".join(str(r.folder) for r in runs[:8])
        raise MissingInputError(
            f"these are runs of {len(jobs)} jobs: {named}; name those of one job"
        )
    return runs, others


def _is_run(folder: Path) -> bool:
    """Not one that may not be looked into; that it was not read is told where it is read."""
    try:
        return run_folder.is_run(folder)
    except OSError:
        return False


def _foreign(paths: Sequence[Path]) -> list[str]:
    """Folders that look like a run's by the name of a file which another tool wrote."""
    found = []
    for path in filter(Path.is_dir, paths):
        own, others = owned(path)
        if others:
            whose = "" if own else ", and this is no run folder of allaboard"
            found.append(f"{path}: {' and '.join(others)}: not written by allaboard{whose}")
    return found


def _passed_over(paths: Sequence[Path], runs: Sequence[Run]) -> list[str]:
    """What lies in a folder of runs, or in a run's own, and is no part of one: it may be of another job, and
    is read where it is named."""
    found = []
    for path in {r.folder for r in runs} | {r.folder.parent for r in runs} & set(paths):
        own = {*PARTS, *(r.folder.name for r in runs if r.folder.parent == path)}
        more = sorted(p.name for p in path.iterdir() if p.name not in own)
        if more:
            names = ", ".join(more[:4]) + (f" and {len(more) - 4} more" if len(more) > 4 else "")
            found.append(f"{path}: {names}: no part of the run; read only if you name it too")
    return sorted(found)


def _launchers(runs: Sequence[Run], record: Record) -> None:
    """The log of a launcher is not that of rank 0: only its lines' own prefixes tell ranks."""
    for run in runs:
        if run.start is None or not run.start.wrapped:
            continue
        name = str(run.folder / "logs" / "worker-0.log")
        for at, read in enumerate(record.read):
            if read == name:
                record.logs[at] = -1


def _pids(runs: Sequence[Run], record: Record) -> list[Glimpse]:
    """Whose pids the runs tell, where dumps beside them tell pids alone."""
    if not any(g.pid and g.rank < 0 and g.stack is not None for g in record.glimpses):
        return []
    found = []
    for run in runs:
        workers = [(w.rank, w.pid) for w in run.report.workers] if run.report is not None else []
        members = run.view.members if run.view is not None else ()
        workers += [(m.who.rank, m.who.pid) for m in members if not m.launcher]
        place = Place(file=str(run.folder))
        found += [Glimpse(origin=place, rank=r, pid=p) for r, p in workers if r >= 0 and p]
    return found


def _course(run: Run) -> list[str]:
    """What happened, in a few lines."""
    lines = []
    if run.start is not None:
        many = "a launcher" if run.start.wrapped else f"{run.start.size} workers"
        command = " ".join(redaction.redact_command(run.start.command))[:200]
        lines.append(f"job {run.start.job} on {run.start.host}: {many} of {command}")
        lines.append(f"started {run.start.at}")
    if run.report is not None:
        end = f"{run.report.outcome} after {run.report.seconds:.1f} s: {run.report.reason}"
        lines.append(f"ended {end}, exit code {run.report.exit_code}")
    elif run.last:
        lines.append(f"last sign of life {run.last}")
    if run.report is None and run.steps is not None:
        lines.append(f"by then between step {run.steps[0]} and {run.steps[1]}")
    if run.view is not None:
        lines += [f"at {run.view_at}:", *(f"  {line}" for line in _members(run.view))]
    elif run.report is not None:
        lines += [
            f"  rank {w.rank} (pid {w.pid}): {w.phase}, step {w.step}, "
            + (w.signal or f"exit code {w.exit_code}")
            for w in run.report.workers[:MEMBERS]
        ]
    return lines


def _members(view: JobView) -> list[str]:
    people = [m for m in view.members if not m.launcher]
    lines = [_member(m) for m in people[:MEMBERS]]
    return [*lines, f"and {len(people) - MEMBERS} more"] if len(people) > MEMBERS else lines


def _member(member: Member) -> str:
    step = f", step {member.step}" if member.step else ""
    where = member.stack.user if member.stack is not None else None
    if member.exit is not None:
        end = member.exit
        how = (
            f"killed by signal {end.signal}" if end.signal is not None else f"exit code {end.code}"
        )
        said = f": {member.raised.type}" if member.raised is not None else ""
        return f"{member.who}: ended{step}, {how}{said}"
    doing = "stopped" if member.stopped else f"{member.phase.name.lower()}"
    place = f", {classify_stack(member.stack)} at {where}" if where is not None else ""
    return f"{member.who}: {doing}{step}{place}"


def _groups(dumps: Dumps) -> StackGroups:
    groups = StackGroups()
    for number, stack in sorted(dumps.stacks.items()):
        groups.add(number, stack.frames)
    return groups


def _unique(findings: Sequence[Finding]) -> list[Finding]:
    seen: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.rule, finding.summary, finding.who), finding)
    return list(seen.values())
