"""Run folders, whole, in half, of other versions, and of some hosts only."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import msgspec
import pytest

from allaboard.agent.final_report import assemble_report
from allaboard.agent.journal import Journal
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.diagnosis.logs.input_files import MissingInputError
from allaboard.facts import Certainty, Diagnosis, Evidence, Finding, JobView, Severity, Stage, Who
from allaboard.facts.samples import USER, sample_job, sample_member, sample_stack, waiting_member
from allaboard.report.diagnosis import as_json, as_text
from allaboard.rules.engine.catalogue import load_catalogue

FINDING = Finding(
    rule="HANG005",
    name="not-in-the-collective",
    severity=Severity.WARNING,
    certainty=Certainty.LIKELY,
    stage=Stage.RUNTIME,
    who=(Who(index=1, rank=1, pid=101),),
    summary="worker 1 is asleep; the others wait for it",
    evidence=(Evidence("idle", "faulthandler"),),
    fix="py-spy dump --pid 101",
    at="2026-01-02T03:04:05.000Z",
)
VIEW = sample_job(waiting_member(0), sample_member(1, stack=sample_stack(USER)), waiting_member(2))


def left(folder: Path, view: JobView = VIEW, report: bool = True, name: str = "j1") -> Path:
    """What the agent itself leaves of a job of three."""
    (folder / "logs").mkdir(parents=True)
    for worker in range(3):
        (folder / "logs" / f"worker-{worker}.log").write_text(f"step 40 of worker {worker}\n")
    journal = Journal(folder)
    journal.write_start("2026-01-02T03:04:00.000Z", name, ("python", "train.py"), 3, False)
    for worker in range(3):
        journal.write_worker(worker, 100 + worker, folder)
    journal.write_finding(FINDING)
    journal.write_view("2026-01-02T03:04:06.000Z", view)
    journal.write_pulse("2026-01-02T03:05:06.000Z", view)
    if report:
        told = assemble_report(
            job=name,
            command=("python", "train.py"),
            outcome="interrupted",  # type: ignore[arg-type]
            reason="interrupted",
            code=130,
            started="2026-01-02T03:04:00.000Z",
            seconds=70.0,
            run_dir=str(folder),
            view=view,
            findings=(FINDING,),
            notes=(),
        )
        journal.write_report(told, None)
    journal.close()
    return folder


def told(*folders: Path) -> Diagnosis:
    return diagnose_paths(folders, load_catalogue())


def test_a_whole_folder_tells_all(tmp_path: Path) -> None:
    found = told(left(tmp_path / "run"))
    assert [f.rule for f in found.findings] == ["HANG005"]
    assert found.missing == () and found.notes == ()
    text = as_text(found)
    assert "> rank 1: in its own code at train.py:41 in train" in text
    assert "worker 0 (rank 0, a, pid 100): training, step 40" in text
    assert msgspec.json.decode(as_json(found).encode(), type=Diagnosis) == found


def test_without_the_report_it_says_what_is_missing(tmp_path: Path) -> None:
    found = told(left(tmp_path / "run", report=False))
    assert [f.rule for f in found.findings] == ["HANG005"]
    assert "report.json is not there" in found.missing[0]
    assert "last sign of life 2026-01-02T03:05:06.000Z" in found.told


def test_without_a_log_it_names_the_worker(tmp_path: Path) -> None:
    folder = left(tmp_path / "run")
    (folder / "logs" / "worker-1.log").unlink()
    assert told(folder).missing == ("the log of worker-1: what it printed",)


@pytest.mark.parametrize("percent", range(0, 100, 7))
def test_a_torn_journal_and_report_never_fail(tmp_path: Path, percent: int) -> None:
    folder = left(tmp_path / "run")
    for name in ("journal.jsonl", "report.json"):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) * percent // 100])
    found = told(folder)
    assert found.missing
    assert found.findings or found.conclusion


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"view","at":5,"view":{}}',
        '{"kind":"pulse"}',
        '{"kind":"worker","worker":"x"}',
        "[1]",
        '{"kind":"start","size":"many"}',
        "[" * 10000,
    ],
)
def test_a_hostile_line_is_told_and_passed_by(tmp_path: Path, line: str) -> None:
    folder = left(tmp_path / "run")
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text() + line + "\n")
    assert [f.rule for f in told(folder).findings] == ["HANG005"]


def test_any_byte_may_be_wrong(tmp_path: Path) -> None:
    folder = left(tmp_path / "a")
    files = [folder / "journal.jsonl", folder / "report.json", folder / "logs/worker-1.log"]
    whole = {f: f.read_bytes() for f in files}
    chance = Random(1)
    for _ in range(150):
        for file, data in whole.items():
            torn = bytearray(data)
            for _ in range(chance.randrange(6)):
                at = chance.randrange(len(torn))
                torn[at : at + chance.randrange(3)] = chance.choice(
                    [b"9" * 12, b"\xff", b'"', b"{", b"null", b"-1", b"\n", b"\0", b""]
                )
            file.write_bytes(torn[: chance.choice([len(torn), chance.randrange(len(torn))])])
        found = told(folder)
        assert as_text(found) and as_json(found)


def test_folders_of_some_hosts_only(tmp_path: Path) -> None:
    view = sample_job(waiting_member(0), waiting_member(2))
    found = told(left(tmp_path / "a", view=view))
    assert any(m.startswith("rank 1 of 3: there is no evidence of it here") for m in found.missing)


def test_folders_of_two_jobs_are_not_mixed(tmp_path: Path) -> None:
    one, other = left(tmp_path / "a"), left(tmp_path / "b", name="j2")
    with pytest.raises(MissingInputError, match="runs of 2 jobs"):
        told(one, other)
    with pytest.raises(MissingInputError, match="runs of 2 jobs"):
        told(tmp_path)


def test_logs_add_the_cause_that_was_not_seen(tmp_path: Path) -> None:
    folder = left(tmp_path / "run")
    (folder / "journal.jsonl").unlink()
    report = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps(report | {"findings": []}))
    (folder / "logs" / "worker-1.log").write_text(
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/home/u/train.py", line 9, '
        "in load\n[rank1]: KeyError: 'label'\n"
    )
    found = told(folder)
    assert [(f.rule, [w.rank for w in f.who]) for f in found.findings] == [("EXIT002", [1])]
    assert "worker-1.log:1" in found.findings[0].fix


GLOO = (
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at "
    "/g/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 12 vs 8. Received data size doesn't "
    "match expected size. Is there a distributed collective mismatch in your code?\n"
)


@pytest.mark.parametrize("rule", ["NUM002", "HANG009"])
def test_logs_add_no_mismatch_of_which_the_run_knew_the_rank(tmp_path: Path, rule: str) -> None:
    folder = left(tmp_path / "run")
    (folder / "journal.jsonl").unlink()
    report = json.loads((folder / "report.json").read_text())
    known = report["findings"][0] | {"rule": rule, "severity": "error"}
    (folder / "report.json").write_text(json.dumps(report | {"findings": [known]}))
    (folder / "logs" / "worker-1.log").write_text(GLOO)
    assert [f.rule for f in told(folder).findings] == [rule]
    (folder / "report.json").write_text(json.dumps(report | {"findings": []}))
    assert [f.rule for f in told(folder).findings] == ["LOG003"]


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    assert "there was nothing to read" in told(tmp_path).conclusion
    with pytest.raises(MissingInputError, match="no such file"):
        told(tmp_path / "none")


def test_control_characters_of_others_stay_harmless(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_bytes(
        b'Traceback (most recent call last):\n  File "/h/\x1b]0;x\x07.py", line 1, in f\nKeyError: \x1b[2J\n'
    )
    text = as_text(told(tmp_path), verbose=True)
    assert "EXIT002" in text and "\x1b" not in text and "\x07" not in text


def test_what_lies_beside_a_run_is_said_to_be_passed_over(tmp_path: Path) -> None:
    run = left(tmp_path / "run")
    assert not diagnose_paths([run], load_catalogue()).notes
    assert not diagnose_paths([tmp_path], load_catalogue()).notes
    (run / "traces").mkdir()
    (tmp_path / "slurm-7.out").write_text("nothing\n")
    assert diagnose_paths([run], load_catalogue()).notes == (
        f"{run}: traces: not part of the run; name it too if it should be read",
    )
    assert len(diagnose_paths([tmp_path], load_catalogue()).notes) == 2


def test_the_pids_of_a_run_tell_whose_a_dump_is(tmp_path: Path) -> None:
    sample = Path(__file__).parents[1] / "readers" / "samples" / "pyspy_asleep"
    for old, new in ((5901, 100), (5902, 101)):
        dump = (sample / f"pyspy.{old}.txt").read_text().replace(str(old), str(new))
        (tmp_path / f"{new}.txt").write_text(dump)
    dumps = sorted(tmp_path.glob("*.txt"))
    for report in (True, False):
        run = left(tmp_path / f"run{report}", report=report)
        (found,) = (
            f
            for f in diagnose_paths([run, *dumps], load_catalogue()).findings
            if f.rule == "DUMP001"
        )
        assert found.summary.startswith("rank 0 waits") and [w.rank for w in found.who] == [1]
