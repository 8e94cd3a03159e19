"""Every command in a fenced block of README, CONTRIBUTING and docs is accepted by our own command line.

Commands of other programs are run by a test, or are in `NOT_RUN` with the reason. What the start page, the
tutorials and the pages of launchers show is also run: see `test_shown_commands.py`; what other pages show:
`test_reference_commands.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from allaboard.cli import COMMANDS, run_command_line
from allaboard.options.command_parser import build_parser
from allaboard.options.script_boundary import split_at_script
from recorded_runs import stopped, write_run
from shell_pages import Typed, commands_of, type_command

ROOT = Path(__file__).parents[1]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples" / "README.md"})
BLOCK = re.compile(r"^( *)```(\w*)(?: (\S+))?\n(.*?)^\1```$", re.M | re.S)
"""A fenced block: indentation, language, name of the file if it is to be saved, text."""
OPERATORS = ("|", "&&", "||", ";", "&", ">", ">>", "<", "(", ")")
PLACEHOLDERS = {
    "N": "4", "H1,H2": "node0,node1", "PID": "4711", "HOST:PID": "node0:4711", "PATH": "logs",
    "PID_OF_PS": "4711", "PID_OF_WORKER": "4712", "WORD": "4711", "SCRIPT": "train.py",
    "MODULE": "train", "COMMAND": "python",
}  # fmt: skip
"""Words of a synopsis, and what somebody types instead of them."""
NOT_RUN = {
    "accelerate": "starts what follows: zoo/test_launcher_pages.py",
    "apt-get": "installs a package of the system",
    "awk": "run with `allaboard rules`: test_the_next_free_codes_are_printed",
    "chmod": "a program of the system",
    "eval": "run by cli/test_completion.py",
    "kubectl": "needs a Kubernetes cluster",
    "mpirun": "starts what follows: zoo/test_under_launchers.py",
    "openssl": "a program of the system",
    "sort": "a program of the system",
    "srun": "needs Slurm; with it: zoo/test_under_launchers.py",
    "tensorboard": "a program of others",
    "torchrun": "starts what follows: zoo/test_under_launchers.py",
    "xdg-open": "opens a browser",
}  # fmt: skip
"""Programs whose commands are not run word by word, and why."""


def typed_lines() -> Iterator[tuple[str, str]]:
    """Yield page and text of each command: what follows ``$`` in a console block, and whole shell blocks."""
    for page in PAGES:
        for indent, language, _, text in BLOCK.findall(page.read_text()):
            plain = re.sub(rf"^{indent}", "", text, flags=re.M).replace("\\\n", " ")
            if language == "console":
                for part in re.split(r"^\$ ", plain, flags=re.M)[1:]:
                    # A quote that is open goes on in the next line.
                    lines = part.splitlines()
                    end = next(
                        n for n in range(1, len(lines) + 1) if _is_whole("\n".join(lines[:n]))
                    )
                    yield str(page.relative_to(ROOT)), "\n".join(lines[:end])
            elif language in ("sh", "bash", "shell"):
                yield from ((str(page.relative_to(ROOT)), ln) for ln in plain.splitlines() if ln)


def _is_whole(text: str) -> bool:
    with contextlib.suppress(ValueError):
        shlex.split(text, comments=True)
        return True
    return False


LINES = sorted(set(typed_lines()))


def simple_commands(line: str) -> list[list[str]]:
    """Return the words of each program that a line starts, without variables and redirections."""
    while "$(" in line:
        line = re.sub(r"\$\([^()]*\)", "VALUE", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    commands: list[list[str]] = [[]]
    skips = False
    for word in lexer:
        if word in OPERATORS:
            skips = word in (">", ">>", "<")
            if not skips:
                commands.append([])
        elif skips:
            skips = False
        else:
            commands[-1].append(word)
    return [words for words in map(_without_variables, commands) if words]


def _without_variables(words: list[str]) -> list[str]:
    while words and re.match(
        r"^(\w+=|export$|exec$|do$|done$|wait$|for$|in$|then$|fi$|if$)", words[0]
    ):
        words = [] if words[0] in ("export", "for", "wait", "done", "fi") else words[1:]
    return words


def our_words(words: list[str]) -> list[str] | None:
    """Return what follows ``allaboard`` in a command; None if it starts something else."""
    names = [word.rpartition("/")[2] for word in words]
    return words[names.index("allaboard") + 1 :] if "allaboard" in names else None


def parse_ours(words: list[str]) -> None:
    """Parse as our command line does; raises UsageError or SystemExit for what it would refuse."""
    words = [w for w in words if w not in ("[OPTIONS]", "[ARGS…]")]
    words = [re.sub(r"^\[|\]$|…\]?$", "", w) for w in words]
    words = [PLACEHOLDERS.get(w, w) for w in words]
    assert words[0] in COMMANDS, words[0]
    parser = build_parser(
        words[0], importlib.import_module(f"allaboard.cli.{words[0]}").add_arguments
    )
    rest = words[1:]
    if words[0] == "run":
        rest = rest[: split_at_script(parser, rest)[0]]
    parser.parse_checked_arguments(rest)


def complaint(page: str, line: str) -> str:
    """Return what is wrong with a command of a page; "" if nothing is."""
    for words in simple_commands(line):
        ours = our_words(words)
        if ours is not None:
            try:
                parse_ours(ours)
            except (Exception, SystemExit) as error:
                return f"refused: {error!r}"
            continue
        wrong = _complaint_about_others(words)
        if wrong:
            return wrong
    return ""


def _complaint_about_others(words: list[str]) -> str:
    program = words[0].rpartition("/")[2]
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        return "" if set(words[1:]) <= set(targets) else "no such target"
    if program == "pip":
        extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.M)
        wanted = re.findall(r"\[([\w,]+)\]", " ".join(words))
        return "" if {e for w in wanted for e in w.split(",")} <= set(extras) else "no such extra"
    if program in ("python", "pytest", "ruff", "mypy"):
        files = [w for w in words[1:] if "/" in w and not w.startswith("/") and "=" not in w]
        missing = [f for f in files if not (ROOT / f).exists()]
        return f"no {missing}" if missing else ""
    return "" if program in NOT_RUN else f"{program} is neither run nor in the table"


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{p}: {ln[:60]}" for p, ln in LINES])
def test_a_command_of_a_page_is_accepted(page: str, line: str) -> None:
    assert complaint(page, line) == "", f"{page}: {line}"


def test_what_is_wrong_would_be_seen() -> None:
    assert len(LINES) > 100
    wrong = (
        "allaboard run --no-such-option train.py",
        "allaboard run -n four train.py",
        "RANK=0 srun -N 2 allaboard run --on-failure never train.py",
        "kubectl logs job/x | allaboard diagnoze -",
        "allaboard preflight --timeout soon",
        "make everything",
        "pip install 'allaboard[everything]'",
        "python bench/no_such_file.py",
        "unheard-of program",
    )
    assert [line for line in wrong if not complaint("README.md", line)] == []


def test_every_row_of_the_table_is_needed() -> None:
    programs = {w[0].rpartition("/")[2] for _, line in LINES for w in simple_commands(line)}
    assert sorted(NOT_RUN.keys() - programs) == []


def test_data_of_the_pages_can_be_read() -> None:
    blocks = [(page, *block) for page in PAGES for block in BLOCK.findall(page.read_text())]
    read = 0
    for page, indent, language, name, text in blocks:
        plain = re.sub(rf"^{indent}", "", text, flags=re.M)
        if language == "json":
            json.loads(plain)
        elif language == "yaml":
            assert list(yaml.safe_load_all(plain))
        elif language == "python":
            # The reference shows signatures.
            is_signature = plain.startswith(("def ", "class ")) and "\n" not in plain.strip()
            compile(plain.strip() + ": ..." * is_signature, f"{page}:{name}", "exec")
        else:
            continue
        read += 1
    assert read > 20


def test_the_commands_of_the_report_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (".allaboard", "node0", "node1"):
        write_run(tmp_path / folder / "JOB", findings=(stopped(),))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "job.log").write_text("[rank1]: ValueError: label 17 is out of range\n")
    monkeypatch.chdir(tmp_path)
    typed = [t.command for t in commands_of(ROOT / "docs" / "report.md")]
    ours = [shlex.split(c, comments=True)[1:] for c in typed if c.startswith("allaboard")]
    assert len(ours) >= 4
    for words in ours:
        assert run_command_line(words) == 0, (words, capsys.readouterr().err)
        (wrote,) = re.findall(r"wrote (\S+)", capsys.readouterr().err)
        assert "<h1" in Path(wrote).read_text()


def test_the_command_of_the_sources_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (typed,) = commands_of(ROOT / "docs" / "sources.md")
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert run_command_line(shlex.split(typed.command)[1:]) == 0
    assert "WORLD_SIZE=2" in capsys.readouterr().out


def test_the_next_free_codes_are_printed() -> None:
    (line,) = [ln for page, ln in LINES if page == "CONTRIBUTING.md" and "| awk" in ln]
    printed = type_command(Typed(line.removeprefix(".venv/bin/"), ""), ROOT).split()
    assert len(printed) > 10 and all(re.fullmatch(r"[A-Z]+\d{3}", code) for code in printed)
    assert not any((ROOT / "docs" / "rules" / f"{code}.md").exists() for code in printed)
