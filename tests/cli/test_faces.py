"""`allaboard rules`, `explain`, `--version`, `diagnose`: what they print and how they end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from allaboard.facts import Certainty, Evidence, Finding, Severity, Stage, Who
from allaboard.report.finding_text import finding_lines
from allaboard.rules.engine.catalogue import load_catalogue


def allaboard(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "allaboard", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_rules_lists_all() -> None:
    done = allaboard("rules")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        e.code for e in load_catalogue().entries
    ]


def test_explain_prints_the_page_by_code_or_name() -> None:
    assert "## What to do" in allaboard("explain", "hang001").stdout
    assert allaboard("explain", "stopped").stdout == allaboard("explain", "HANG001").stdout


def test_explain_offers_what_is_near() -> None:
    done = allaboard("explain", "HANG01")
    assert done.returncode == 2 and "did you mean HANG0" in done.stderr


def test_version_and_help() -> None:
    assert allaboard("--version").stdout.startswith("allaboard ")
    assert "run" in allaboard("--help").stdout


def test_a_finding_is_at_most_three_lines_and_harmless() -> None:
    finding = Finding(
        rule="X001",
        name="x",
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
        stage=Stage.RUNTIME,
        who=(Who(index=1, rank=1, host="\x1b]0;evil\x07", pid=4),),
        summary="line\nbreak \x1b[2J",
        evidence=tuple(Evidence(f"e{n}") for n in range(9)),
        fix="kill -CONT 4",
    )
    lines = finding_lines(finding)
    assert len(lines) == 3
    assert not any("\x1b" in line or "\n" in line or "\x07" in line for line in lines)
    assert "(likely)" in lines[0] and "kill -CONT 4" in lines[2]


def test_diagnose_tells_where_a_process_is(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(
        "import time\ndef pause():\n    print('up', flush=True)\n    time.sleep(60)\npause()\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        began = time.monotonic()
        done = allaboard("diagnose", str(process.pid))
        assert time.monotonic() - began < 30
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    assert "asleep at waits.py:4 in pause" in done.stdout


def test_diagnose_of_nobody() -> None:
    done = allaboard("diagnose", "4194000")
    assert done.returncode == 2 and "no process 4194000" in done.stderr
