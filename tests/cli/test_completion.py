"""`allaboard completion`: what a shell offers, asked of a real bash; the other shells where they are
installed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from allaboard.cli import COMMANDS
from allaboard.rules.engine.catalogue import load_catalogue


@cache
def script(shell: str) -> str:
    words = [sys.executable, "-m", "allaboard", "completion", shell]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def offered(folder: Path, *words: str) -> set[str]:
    """What bash completes for the last of these words; "=" is a word of its own, as bash has it."""
    typed = " ".join(map(shlex.quote, ["allaboard", *words]))
    ask = f'COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _allaboard; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc"], input=f"{script('bash')}\n{ask}\n",
        capture_output=True, text=True, cwd=folder, timeout=60, check=True,
    )  # fmt: skip
    assert not done.stderr
    return set(done.stdout.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "data").mkdir()
    return tmp_path


def test_bash_offers_commands(folder: Path) -> None:
    assert offered(folder, "") >= {*COMMANDS, "--help", "--version"}
    assert offered(folder, "d") == {"diagnose", "drill"}


def test_bash_offers_options_and_their_values(folder: Path) -> None:
    assert offered(folder, "run", "--on-h") == {"--on-hang"}
    assert offered(folder, "run", "--on-hang", "") == {"report", "stop"}
    assert offered(folder, "check", "--format", "s") == {"sarif"}
    assert offered(folder, "check", "--format", "=") == {"text", "json", "sarif", "github"}
    assert offered(folder, "check", "--format", "=", "g") == {"github"}
    assert "--look" not in offered(folder, "diagnose", "--")
    assert offered(folder, "run", "-n", "") == set()


def test_bash_offers_files_rules_and_drills(folder: Path) -> None:
    assert offered(folder, "check", "tr") == {"train.py"}
    assert offered(folder, "preflight", "--output", "tr") == {"train.py"}
    assert offered(folder, "explain", "") == {e.code for e in load_catalogue().entries}
    assert "other-order" in offered(folder, "drill", "other-")
    assert offered(folder, "completion", "") == {"bash", "zsh", "fish"}


def test_what_follows_the_script_is_the_scripts(folder: Path) -> None:
    assert offered(folder, "run", "-n", "2", "") == {"train.py", "data"}
    for start in (
        ["-n", "2", "train.py"],
        ["--observe", "train.py"],
        ["-n2", "-m", "train"],
        ["--"],
    ):
        assert offered(folder, "run", *start, "--on-h") == set()
        assert offered(folder, "run", *start, "--on-hang", "") == {"train.py", "data"}
    assert "--on-hang" in offered(folder, "run", "--on-failure", "=", "restart", "--on-")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_and_names_every_command(shell: str) -> None:
    text = script(shell)
    assert all(name in text for name in COMMANDS)
    if shutil.which(shell) is not None:
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def fish_offers(folder: Path, typed: str) -> set[str]:
    """What fish completes, without the descriptions."""
    (folder / "allaboard.fish").write_text(script("fish"))
    ask = f"source {folder}/allaboard.fish; complete -C {shlex.quote(typed)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", ask],
        capture_output=True, text=True, cwd=folder, timeout=60, check=True,
    )  # fmt: skip
    assert not done.stderr
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_offers_commands_options_values_and_rules(folder: Path) -> None:
    assert fish_offers(folder, "allaboard ") >= set(COMMANDS)
    assert fish_offers(folder, "allaboard run --on-h") == {"--on-hang"}
    assert fish_offers(folder, "allaboard run --on-hang ") == {"report", "stop"}
    assert fish_offers(folder, "allaboard explain ") == {e.code for e in load_catalogue().entries}
