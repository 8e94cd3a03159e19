"""What is typed wrong is named, with what to type instead: one line on standard error, exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from allaboard.cli import COMMANDS, main, run_command_line


def allaboard(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "allaboard", *words],
        capture_output=True, text=True, cwd=folder, timeout=60,
    )  # fmt: skip


MISUSE = [
    ("run --frobnicate -n 2 x.py", "run: unknown option --frobnicate; see: allaboard run --help"),
    (
        "run --on-hangs stop -n 2 x.py",
        "run: unknown option --on-hangs; did you mean --on-hang? "
        "try: allaboard run --on-hang stop -n 2 x.py",
    ),
    (
        "run --verbos -n 2 x.py",
        "run: unknown option --verbos; did you mean --verbose? try: allaboard run --verbose -n 2 x.py",
    ),
    (
        "run --on-hang=stop --grce=3 x.py",
        "run: unknown option --grce; did you mean --grace? "
        "try: allaboard run --on-hang=stop --grace=3 x.py",
    ),
    ("run -n two x.py", 'run: -n expects a number from 1 to 4096, got "two"'),
    ("run -n0 x.py", 'run: -n expects a number from 1 to 4096, got "0"'),
    ("run --nproc_per_node gpu x.py", 'run: --nproc_per_node expects a number from 1 to 4096, got "gpu"'),
    ("run -n", "run: -n expects a number from 1 to 4096, got nothing"),
    ("run -n --observe x.py", "run: -n expects a number from 1 to 4096, got nothing"),
    ("run --timeout soon x.py", 'run: --timeout expects a number of seconds, 0 or more, got "soon"'),
    ("run --timeout nan x.py", 'run: --timeout expects a number of seconds, 0 or more, got "nan"'),
    ("run --on-hang end x.py", 'run: --on-hang expects report or stop, got "end"'),
    ("run --observe=yes x.py", "run: --observe takes no value; try: --observe"),
    (
        "run --nnodes 2 --nproc-per-node 4 x.py",
        "run: unknown option --nnodes, which is torchrun's; to run torchrun under allaboard: "
        "allaboard run -- torchrun --nnodes 2 --nproc-per-node 4 x.py",
    ),
    ("run", "run: no script; try: allaboard run -n 4 train.py"),
    ("check --format xml", 'check: --format expects text, json, sarif or github, got "xml"'),
    ("check -verbose",
     "check: unknown option -verbose; did you mean --verbose? try: allaboard check --verbose"),
    ("preflight --quick --full", "preflight: --full is not allowed with --quick"),
    ("spec --as tfconfig", 'spec: --as expects tf_config, env, hostfile or torchrun, got "tfconfig"; '
     "did you mean --as tf_config?"),
    ("spec --port 70000", 'spec: --port expects a number from 0 to 65535, got "70000"'),
    ("drill -n 99", 'drill: -n expects a number from 2 to 8, got "99"'),
    ("explain", "explain: name a rule, for example: allaboard explain HANG001; `allaboard rules` lists all"),
    ("diagnose --remote -x 1",
     "diagnose: --remote expects a value; if it begins with a dash: --remote=VALUE"),
    ("rules all", 'rules: unexpected argument "all"; see: allaboard rules --help'),
    ("completion tcsh", 'completion: completion is for bash, zsh or fish, got "tcsh"'),
    ("diagnose --formt json x", "diagnose: unknown option --formt; did you mean --format? "
     "try: allaboard diagnose --format json x"),
    ("diagnose --hosts a,-b", 'diagnose: --hosts expects host names, as node1,node2; got "a,-b"'),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "message"), MISUSE, ids=[typed for typed, _ in MISUSE])
def test_what_is_typed_wrong_is_named(
    typed: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(typed.split()) == 2
    assert capsys.readouterr() == ("", f"allaboard {message}\n")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("rum -n 2 x.py", "unknown command rum; did you mean: allaboard run -n 2 x.py"),
        (
            "train.py --epochs 3",
            "train.py is no command; to run it: allaboard run train.py --epochs 3",
        ),
        ("4711", "4711 is no command; if it is a process: allaboard diagnose 4711"),
        ("frobnicate", "unknown command frobnicate; see: allaboard --help"),
        ("--versoin", "unknown option --versoin; did you mean --version?"),
        ("-n 2 run x.py", "unknown option -n; options follow the command: allaboard run -n"),
    ],
)
def test_what_is_no_command(typed: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(typed.split()) == 2
    assert capsys.readouterr() == ("", f"allaboard: {message}\n")


def test_alone_it_prints_its_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([]) == 2
    assert capsys.readouterr().err.startswith("usage: allaboard COMMAND")


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["help"], *([c, "-h"] for c in COMMANDS),
                                   *([c, "--help"] for c in COMMANDS), ["help", "run"]])  # fmt: skip
def test_help_has_one_style(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["allaboard", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    text, errors = capsys.readouterr()
    assert not ended.value.code and not errors
    assert text.startswith("usage: allaboard") and "-h, --help" in text
    assert "\n\n\n" not in text and not text.endswith("\n\n")
    lines = text.partition("\nexamples:")[0].splitlines()
    assert max(map(len, lines)) <= 80 and all(line == line.rstrip() for line in lines)


def test_every_message_of_a_command_says_who_speaks(tmp_path: Path) -> None:
    done = allaboard(tmp_path, "diagnose", "nowhere.log")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("allaboard diagnose: ") and "nowhere.log" in done.stderr


SCRIPT = "import sys; print('got', sys.argv[1:])"


def test_an_option_behind_the_script_is_noted_and_still_the_scripts(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT)
    done = allaboard(tmp_path, "run", "x.py", "-n", "2", "--lr", "3")
    assert done.returncode == 0 and "got ['-n', '2', '--lr', '3']" in done.stdout
    assert (
        "allaboard: -n 2 follows the script, so the script gets it; options of allaboard go before the "
        "script: allaboard run -n 2 x.py\n"
    ) in done.stderr


def test_an_option_that_is_the_scripts_own_is_not_noted(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT + "\n# add_argument('--timeout')")
    for words in (["--timeout", "3"], ["-v"], ["--lr", "-n"]):
        done = allaboard(tmp_path, "run", "-n", "1", "x.py", *words)
        assert done.returncode == 0 and "follows the script" not in done.stderr, words


def test_what_torchrun_calls_it_is_understood(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT)
    for name in ("--nproc-per-node", "--nproc_per_node"):
        for words in ([name, "2"], [f"{name}=2"]):
            done = allaboard(tmp_path, "run", *words, "x.py")
            assert done.returncode == 0 and "[1] got []" in done.stdout, done.stderr


def test_a_log_comes_through_standard_input(tmp_path: Path) -> None:
    log = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "train.py", line 8, in <module>\n'
        "[rank1]: ValueError: no such column\n"
    )
    words = [sys.executable, "-m", "allaboard", "diagnose", "-"]
    ask = {"capture_output": True, "text": True, "input": log, "cwd": tmp_path, "timeout": 60}
    done = subprocess.run(words, **ask)  # type: ignore[call-overload]
    assert done.returncode == 1 and "ValueError" in done.stdout and "<stdin>:" in done.stdout
    assert "standard-input" not in done.stdout
    done = subprocess.run([*words, "--format", "json"], **ask)  # type: ignore[call-overload]
    assert json.loads(done.stdout)["read"] == ["<stdin>"]
