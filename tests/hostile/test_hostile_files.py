"""Prepared files against `check`, `diagnose` and `report`: read in bounded time and memory, never run, shown
without what drives a terminal, and whatever is wrong with them is told in words."""

from __future__ import annotations

import re
import resource
import tarfile
import time
from pathlib import Path

import pytest
from hostile_files import FOR_CHECK, FOR_DIAGNOSE
from hostile_run_folders import FOR_REPORT, SECRET_LINE

from allaboard.cli import run_command
from recorded_runs import stopped, write_run

CPU_S, GROWTH_KB = 20.0, 600 * 1024
"""Most CPU seconds for one answer, and most KiB by which it may make this process grow."""
FAULTS = (
    "Traceback (most recent call last):\n  File",
    "itself failed",
    "own reader",
    "internal error",
)
DRIVES_A_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CASES = {**FOR_CHECK, **FOR_DIAGNOSE}
assert len(CASES) == len(FOR_CHECK) + len(FOR_DIAGNOSE) >= 72


def answer(
    command: str, words: list[str], capfd: pytest.CaptureFixture[str], is_markup: bool = False
) -> str:
    """Return what the command says of these paths; all that must hold of any answer is checked."""
    cpu, grown = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = run_command(command, words)
    shown = capfd.readouterr()
    assert code in (0, 1, 2), shown
    assert time.process_time() - cpu < CPU_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown < GROWTH_KB
    text = shown.out + shown.err
    assert not DRIVES_A_TERMINAL.search(text), ascii(DRIVES_A_TERMINAL.search(text))
    assert is_markup or not [f for f in FAULTS if f in text], text[-3000:]
    return text


@pytest.mark.parametrize("case", CASES)
def test_is_read_and_does_nothing(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    CASES[case](folder)
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    # By its folder, where some names are passed over, and by its name.
    named = [str(p) for p in sorted(folder.iterdir())]
    for words in ([str(folder)], named if len(named) == 1 else []):
        for command in ("check", "diagnose") if words else ():
            assert answer(command, words, capfd)
    assert not list(working.iterdir()) and not list(folder.rglob("PWNED*"))


@pytest.mark.parametrize("case", FOR_REPORT)
def test_a_run_folder_leads_to_nothing_else(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.log").write_text(f"{SECRET_LINE}\n")
    folder = write_run(tmp_path / "20261125-120000-abcdef", findings=(stopped(),))
    FOR_REPORT[case](folder)
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    for kind in ("--html", "--markdown", "--json"):
        text = answer("report", [kind, "-o", "-", str(folder)], capfd, is_markup=kind == "--html")
        assert SECRET_LINE not in text
        assert kind != "--html" or ("<script>alert" not in text and "<img src=x" not in text)
    assert answer("diagnose", [str(folder)], capfd)
    assert not list(working.iterdir())


def test_a_bundle_has_no_file_to_which_a_link_leads(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret.log").write_text(f"{SECRET_LINE}\n")
    given = tmp_path / "given"
    (given / "old").mkdir(parents=True)
    (given / "rank0.log").symlink_to(tmp_path / "secret.log")
    (given / "old/rank1.log").write_text("ValueError: x\n")
    (given / "rank1.log").symlink_to("old/rank1.log")  # as a launcher names its newest log
    packed = tmp_path / "bundle.tar.gz"
    answer("diagnose", [str(given), "--bundle", str(packed), "--yes"], capfd)
    with tarfile.open(packed) as tar:
        names = tar.getnames()
        contents = {n: file.read().decode() for n in names if (file := tar.extractfile(n))}
    assert any(name.endswith("given/rank1.log") for name in names)
    logs = {n: text for n, text in contents.items() if n.endswith(".log")}
    assert not any(SECRET_LINE in text for text in logs.values())
    left_out = next(text for n, text in contents.items() if n.endswith("left-out.txt"))
    assert "rank0.log: a link to a file outside of" in left_out
