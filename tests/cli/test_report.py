"""`allaboard report` and `diagnose --html` as they are typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recorded_runs import stopped, write_run


def typed(folder: Path, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", *words],
        capture_output=True, text=True, cwd=folder, timeout=60, stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "COLUMNS": "200", "TMPDIR": str(folder)},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_the_newest_run_is_reported_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / ".allaboard" / "20261125-120000-abcdef", findings=(stopped(),))
    code, out, err = typed(tmp_path, "report")
    page = run / "report.html"
    assert (code, out, err) == (0, "", f"allaboard: wrote {page}\n")
    text = page.read_text()
    # The page of the rule is in it, from the catalogue.
    assert "What HANG001 means" in text and "Why it matters" in text
    code, _, err = typed(tmp_path, "report", "--redact")
    assert code == 0 and "report-redacted.html" in err
    assert "node-a" in text and "node-a" not in (run / "report-redacted.html").read_text()


def test_a_run_leaves_its_page(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise ValueError('label 17')\n")
    folder = tmp_path / ".git"
    folder.mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "packed-refs").write_text(f"# pack-refs\n{'c0ffee' * 7} refs/heads/main\n")
    code, _, err = typed(
        tmp_path, "run", "-n", "2", "--run-dir", "run", "--env", "A_TOKEN=hunter22", "train.py"
    )
    page = tmp_path / "run" / "report.html"
    assert code == 1 and err.rstrip().endswith(f"logs, journal and report: {page}")
    text = page.read_text()
    assert "The run failed" in text and "ValueError: label 17" in text and "c0ffeec0ffee" in text
    assert "--run-dir run" in text and "hunter22" not in text
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["options"][:4] == ["-n", "2", "--run-dir", "run"]
    assert "hunter22" not in json.dumps(report)


def test_a_page_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "run" / "report.html").mkdir(parents=True)
    code, _, err = typed(tmp_path, "run", "-n", "1", "--run-dir", "run", "train.py")
    assert code == 0 and err.rstrip().endswith(f"logs, journal and report: {tmp_path}/run")
    assert "report.html was not written" in (tmp_path / "run" / "journal.jsonl").read_text()


def test_each_format_is_what_it_says(tmp_path: Path) -> None:
    run = str(write_run(tmp_path / "run", findings=(stopped(),)))
    code, out, _ = typed(tmp_path, "report", run, "--json")
    report = json.loads(out)
    assert (code, report["schema"], report["world_size"]) == (0, 2, 4)
    assert report["options"] == ["-n", "4"] and report["versions"]["torch"] == "2.13.0"
    assert report["peak_memory_nbytes"] == 2_000_000_003 and report["hosts"] == ["node-a"]
    trace = json.loads(typed(tmp_path, "report", run, "--perfetto")[1])
    phases = {event["ph"] for event in trace["traceEvents"]}
    assert phases == {"M", "X", "C", "i"}
    assert [e["ts"] for e in trace["traceEvents"] if e["ph"] == "i"] == [30e6]
    stacks = json.loads(typed(tmp_path, "report", run, "--speedscope")[1])
    profile = stacks["profiles"][0]
    assert sorted(profile["weights"]) == [1, 3] and profile["endValue"] == 4
    names = [f["name"] for f in stacks["shared"]["frames"]]
    assert [[names[n] for n in s] for s in profile["samples"]] == [
        ["train", "all_reduce"],
        ["train", "load"],
    ]
    code, out, _ = typed(tmp_path, "report", run, "--markdown", "-o", "issue.md")
    assert (code, out) == (0, "")
    text = (tmp_path / "issue.md").read_text()
    assert text.startswith("## The run failed\n") and "kill -CONT 101" in text


def test_markdown_of_others_stays_text(tmp_path: Path) -> None:
    finding = stopped(summary="@team see <b>![x](http://h/y)</b>", fix="echo ```\n# done")
    run = write_run(tmp_path / "run", findings=(finding,))
    _, out, _ = typed(tmp_path, "report", str(run), "--markdown")
    assert "\\@team see \\<b\\>\\!\\[x\\](http://h/y)" in out
    assert "````text\necho ```\n# done\n````" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report",), "no run here; start one: allaboard run"),
        (("report", "nowhere"), "nowhere: no run folder"),
        (("report", "localhost:8700"), "not of a live feed"),
        (
            ("report", "run", "-o", "no/such.html"),
            "no/such.html: no such file or directory; name another",
        ),
        (("report", "run", "--speedscope"), "no stacks were sampled in this run"),
        (("report", "half", "--json"), "half has no report.json that can be read"),
        (("report", "half", "--perfetto"), "no time series"),
        (("report", "job.log", "--perfetto"), "there is no timeline in these files"),
        (("diagnose", "job.log", "--html", "no/such.html"), "--html no/such.html: no such file"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    if "run" in words or "half" in words:
        write_run(tmp_path / "run")
        half = write_run(tmp_path / "half")
        (half / "report.json").unlink()
        (half / "series.jsonl").unlink()
    (tmp_path / "job.log").write_text("ValueError: bad label\n")
    code, _, err = typed(tmp_path, *words)
    assert code == 2 and message in err and "Traceback" not in err


LOG = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/u/train.py", line 7, in <module>
[rank1]:     raise ValueError("label 17 out of range <script>alert(1)</script>")
[rank1]: ValueError: label 17 out of range <script>alert(1)</script>
"""


@pytest.mark.parametrize("words", [("report", "job.log", "-o"), ("diagnose", "job.log", "--html")])
def test_logs_make_a_page_of_the_diagnosis(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "job.log").write_text(LOG)
    code, _, err = typed(tmp_path, *words, "page.html")
    assert code == (0 if words[0] == "report" else 1) and "wrote page.html" in err
    text = (tmp_path / "page.html").read_text()
    assert "<script" not in text and "label 17 out of range &lt;script&gt;" in text
    assert "What EXIT002 means" in text


def test_a_report_of_version_1_can_be_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    report = json.loads((run / "report.json").read_text())
    old = {k: report[k] for k in list(report)[: list(report).index("world_size")]} | {"schema": 1}
    for worker in old["workers"]:
        worker["trained"] = worker.pop("trained_s")
    (run / "report.json").write_text(json.dumps(old))
    code, out, _ = typed(tmp_path, "report", "run", "--markdown")
    assert code == 0 and "The run completed" in out and "Missing" not in out
