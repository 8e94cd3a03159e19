"""Every command that the start page, the tutorials and the launchers' pages show is run by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shell_pages import BLOCK, commands_of, files_of, type_command, unlike

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", DOCS / "README.md", DOCS / "it-hangs-now.md",
         *sorted((DOCS / "launchers").glob("*.md"))]  # fmt: skip
CHECKED = sorted(page for page in PAGES if "$ allaboard check " in page.read_text())
RUN_ELSEWHERE = {
    r"allaboard run -n 3 train\.py": ("zoo/test_tutorials.py", "test_a_tutorial_can_be_followed"),
    r"allaboard run -- torchrun --nproc": (
        "zoo/test_launcher_pages.py",
        "test_torchrun_below_allaboard",
    ),
    r"torchrun --nnodes 4 .* allaboard run": ("zoo/test_under_launchers.py", "test_torchrun"),
    r"mpirun .* allaboard run": ("zoo/test_under_launchers.py", "test_mpirun"),
    r"srun allaboard run --exit-codes scheduler --requeue-on": (
        "zoo/test_slurm_requeue.py",
        "test_a_failed_job_is_requeued_without_the_host_at_fault",
    ),
    r"srun allaboard preflight": ("zoo/test_preflight.py", "test_under_slurm_nothing_need_be_said"),
    r"kubectl logs .* \| allaboard diagnose -": (
        "cli/test_misuse.py",
        "test_a_log_comes_through_standard_input",
    ),
    r"(kubectl exec .* -- )?allaboard diagnose( #.*)?$": (
        "diagnosis/test_target_selection.py",
        "test_the_jobs_of_this_host_are_listed",
    ),
    r"allaboard diagnose --ray": (
        "cli/test_diagnose_ray.py",
        "test_a_raylet_is_found_by_its_program",
    ),
    r"allaboard watch \S+/JOB": ("zoo/test_watched.py", "test_a_hang_is_seen_by_whoever_looks"),
    r"allaboard report \S+/JOB": ("cli/test_report.py", "test_the_newest_run_is_reported_on"),
    r"allaboard diagnose logs/": ("test_shown_commands.py", "test_a_folder_of_logs"),
    r'eval "\$\(allaboard completion bash\)"': ("cli/test_completion.py", "bash"),
    r"pip install \.": ("cli/test_man_page.py", "wheel"),
    r"make demo": ("../scripts/demo.py", "def main"),
    r"make test": ("../Makefile", "test:"),
}
"""Pattern of a command, and the file below tests/ with the text that shows where it is run."""


def elsewhere(command: str) -> tuple[str, str] | None:
    command = re.sub(r"\s+#.*", "", command)
    return next((at for p, at in RUN_ELSEWHERE.items() if re.match(p, command)), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_is_run_somewhere(page: Path) -> None:
    templates = {typed.command for typed in commands_of(DOCS / "templates.md")}
    for command in (typed.command for typed in commands_of(page)):
        if command in templates or command.startswith("allaboard check "):
            continue
        at = elsewhere(command)
        assert at is not None, f"no test runs: {command}"
        file, text = at
        assert text in (ROOT / "tests" / file).read_text()


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.stem)
def test_the_files_of_a_launchers_page_are_checked(page: Path, tmp_path: Path) -> None:
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text)
    checks = [t for t in commands_of(page) if t.command.startswith("allaboard check ")]
    for typed in checks:
        printed = type_command(typed, tmp_path)
        assert unlike(typed.shown, printed) == [], printed


def test_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank1.log").write_text(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "ValueError: label 11 is out of range\n"
    )
    (typed,) = [t for t in commands_of(DOCS / "it-hangs-now.md") if t.command.endswith("logs/")]
    assert "EXIT002" in type_command(typed, tmp_path)


def test_python_of_the_pages_compiles() -> None:
    for page in [*TUTORIALS, *PAGES]:
        for language, name, text in BLOCK.findall(page.read_text()):
            if language == "python":
                compile(text, f"{page}:{name}", "exec")


def test_what_a_page_shows_is_compared() -> None:
    printed = "allaboard 10:00:00: all 3 aboard after 2.5 s\nnoise\n[0] trained 400 steps\n"
    assert (
        unlike("allaboard 9:00:01: all 4 aboard after 12 ms\n...\n[0] trained 1 steps\n", printed)
        == []
    )
    assert unlike("[0] trained 1 steps\n...\nallaboard 9:00:01: all 4 aboard after 1 s\n", printed)
    assert unlike("...\nrank 1 is asleep\n", printed) == ["rank N is asleep"]


def test_the_comparison_quotes_what_was_measured() -> None:
    measured = (ROOT / "bench" / "results" / "peers.md").read_text()
    quoted = re.findall(r"^```text\n(.*?)^```$", (DOCS / "comparison.md").read_text(), re.M | re.S)
    assert len(quoted) >= 4
    for text in quoted:
        assert all(line in measured for line in text.splitlines()), text
