"""Run folders of several shapes, for the tests of reports."""

from __future__ import annotations

from pathlib import Path

import msgspec

from allaboard.agent.final_report import assemble_report
from allaboard.agent.journal import Journal
from allaboard.facts import Activity, Exit, Finding, Frame, Member, Op, Outcome, Pace, Stack
from allaboard.facts.samples import REDUCE, USER, sample_job, sample_member
from allaboard.feed.series import ACTIVITIES, SERIES_NAME, SeriesMembers, SeriesPoint
from watched import stopped_finding

STARTED = "2026-11-25T12:00:00Z"
STOPPED_AT = (Frame("/home/u/data.py", 7, "load"), USER)


def members(count: int, host: str = "node-a", ended: bool = False) -> list[Member]:
    """Ranks that wait for rank 1, or have ended."""
    result = []
    for rank in range(count):
        member = sample_member(
            rank,
            step=400,
            notes={"torch": "2.13.0", "python": "3.11.7" if rank else "3.12.1"},
            pace=Pace(20, 0.05, 0.0, 0.004),
            peak_rss_nbytes=2_000_000_000 + rank,
            stack=None if ended else Stack(frames=_frames(rank), taken_at=99.0),
            op=Op("all_reduce", 401, 95.0) if rank != 1 else None,
            exit=Exit(ended_at=130.0, code=1) if ended else None,
        )
        who = msgspec.structs.replace(member.who, host=host, pid=100 + rank)
        result.append(msgspec.structs.replace(member, who=who))
    return result


def _frames(rank: int) -> tuple[Frame, ...]:
    """Return the stack of a rank, innermost call first."""
    return STOPPED_AT if rank == 1 else (REDUCE, USER)


def stopped(host: str = "node-a", **changes: object) -> Finding:
    """Rank 1 is stopped, found after 30 s."""
    finding = stopped_finding(at="2026-11-25T12:00:30Z", **changes)
    who = tuple(msgspec.structs.replace(w, host=host) for w in finding.who)
    return msgspec.structs.replace(finding, who=who)


def write_run(
    folder: Path,
    ranks: int = 4,
    host: str = "node-a",
    findings: tuple[Finding, ...] = (),
    command: tuple[str, ...] = ("python", "train.py"),
) -> Path:
    """Write the folder of a run; without findings it went well."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logs").mkdir(exist_ok=True)
    journal = Journal(folder)
    journal.write_start(STARTED, folder.name, command, ranks, False, (), ("-n", str(ranks)))
    journal.write_event("2026-11-25T12:00:02Z", f"all {ranks} aboard")
    for finding in findings:
        journal.write_finding(finding)
    if findings:
        journal.write_view(
            "2026-11-25T12:00:31Z", sample_job(*members(ranks, host), now=100.0, progress_at=85.0)
        )
    last = sample_job(*members(ranks, host, ended=True), now=130.0, ended=True)
    journal.write_view("2026-11-25T12:01:00Z", last)
    journal.write_report(
        assemble_report(
            job=folder.name,
            command=command,
            outcome=Outcome.FAILED if findings else Outcome.COMPLETED,
            reason="1 of 4 workers failed" if findings else "every worker ended with exit code 0",
            code=1 if findings else 0,
            started=STARTED,
            seconds=60.0,
            run_dir=str(folder),
            view=last,
            findings=findings,
            notes=(),
            options=("-n", str(ranks)),
            commit="0123456789ab",
        ),
        None,
    )
    journal.close()
    write_series(folder, ranks, host, stopped_rank=1 if findings else -1)
    return folder


def write_series(
    folder: Path, ranks: int, host: str, stopped_rank: int = -1, points: int = 60
) -> None:
    """Write the time series of a run that trains, and in its second half stands still."""
    training, waiting = ACTIVITIES.index(Activity.TRAINING), ACTIVITIES.index(Activity.WAITING)
    halted = ACTIVITIES.index(Activity.STOPPED)
    lines: list[SeriesMembers | SeriesPoint] = [
        SeriesMembers(
            names=tuple(f"worker {n}" for n in range(ranks)),
            ranks=tuple(range(ranks)),
            pids=tuple(100 + n for n in range(ranks)),
            rank_hosts=(host,) * ranks,
            hosts=(host,),
        )
    ]
    for second in range(points):
        stands = stopped_rank >= 0 and second > points / 2
        usual = waiting if stands else training
        lines.append(
            SeriesPoint(
                taken_at=STARTED,
                elapsed_s=float(second),
                step=(min(second, points // 2) * 10 if stopped_rank >= 0 else second * 10,) * ranks,
                step_ms=(50.0,) * ranks,
                activity=tuple(
                    halted if stands and n == stopped_rank else usual for n in range(ranks)
                ),
                waiting=(0.9 if stands else 0.1,) * ranks,
                loss=(1.0 / (second + 1),) * ranks,
                cpu=(1.0,) * ranks,
                memory_mb=(2000.0,) * ranks,
                host_cpu=(float(ranks),),
                host_disk_mb=(30_000.0 + second,),
                host_received_mb_s=(1.5,),
                host_sent_mb_s=(1.5,),
            )
        )
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    (folder / SERIES_NAME).write_bytes(text)
