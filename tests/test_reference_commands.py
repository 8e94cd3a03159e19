"""Every command of ours that guides and reference pages show is run.

Those for one host are typed here; `RUN_BY` says which test runs the others.
What the start page, the tutorials and the pages of launchers show: see `test_shown_commands.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from free_ports import free_port
from shell_pages import Typed, type_command
from test_documented_commands import LINES, ROOT, our_words, simple_commands
from test_shown_commands import PAGES, TUTORIALS, elsewhere

SHOWN = {str(page.relative_to(ROOT)) for page in [*PAGES, *TUTORIALS]}
SYNOPSIS = re.compile(r"\[OPTIONS\]|\[-n N\]")
RUN_BY = {
    r"docs/check\.md: ": ("test_docs_check.py", "test_the_page_tells_the_truth"),
    r"docs/report\.md: ": ("test_documented_commands.py", "test_the_commands_of_the_report_page"),
    r"docs/sources\.md: ": ("test_documented_commands.py", "test_the_command_of_the_sources_page"),
    r"docs/templates\.md: .*srun": ("zoo/test_templates.py", "test_under_slurm"),
    r"docs/templates\.md: .*(node0|num_machines)": ("zoo/test_templates.py", "test_on_two_hosts"),
    r"docs/templates\.md: ": ("zoo/test_templates.py", "test_on_one_host"),
    r".*: \.venv/bin/allaboard rules \|": (
        "test_documented_commands.py",
        "test_the_next_free_codes_are_printed",
    ),
    r".*: allaboard diagnose tests/readers/samples/": (
        "test_docs_diagnose.py",
        "test_a_transcript_is_what_is_printed",
    ),
    r".*: allaboard diagnose PID": (
        "zoo/test_live_jobs.py",
        "test_sessions_that_wait_for_a_server_of_their_flags",
    ),
    r".*: RANK=2 WORLD_SIZE=4 \S+ \S+ allaboard preflight": (
        "zoo/test_preflight.py",
        "test_healthy_hosts_are_a_table_and_a_matrix",
    ),
    r".*: allaboard preflight --hosts": ("zoo/test_preflight.py", "test_over_ssh"),
    r".*: mpirun allaboard preflight": ("zoo/test_preflight.py", "test_under_open_mpi"),
    r".*: torchrun .* allaboard preflight": (
        "zoo/test_preflight.py",
        "test_under_torchrun_whose_store_has_the_port",
    ),
    r".*: RANK=2 WORLD_SIZE=4 \S+ \S+ allaboard run": (
        "zoo/test_on_hosts.py",
        "test_a_fault_of_one_rank_is_named_on_every_host",
    ),
    r".*: srun allaboard run --coordinator etcd": ("multihost_drills/families/etcd.py", "etcd"),
    r".*: srun allaboard run --tls-cert": ("zoo/test_preflight.py", "test_over_tls"),
    r".*: srun allaboard run --on-failure restart --secret-file \S+ --ps-snapshot": (
        "zoo/test_second_host.py",
        "test_the_values_outlive_the_host_of_the_chief",
    ),
    r".*: srun allaboard run --on-failure restart": (
        "zoo/test_rejoin.py",
        "test_the_result_is_that_of_a_run_that_never_failed",
    ),
    r".*: srun allaboard run (--secret-file job\.secret )?train\.py": (
        "zoo/test_under_launchers.py",
        "test_srun",
    ),
    r".*: allaboard watch$": ("cli/test_watch.py", "test_one_look_at_a_run_that_ended_well"),
    r".*: allaboard watch --web$": (
        "zoo/test_web_page.py",
        "test_a_stopped_worker_is_seen_opened_and_its_fix_copied",
    ),
    r".*: allaboard watch node0:8700 --secret-file": (
        "zoo/test_watched.py",
        "test_a_hang_is_seen_by_whoever_looks",
    ),
}
"""Pattern of page and command, and the file below tests/ with the text that shows where its like is run.

Hosts of a test bed may stand there in place of Slurm's, and the secret may come through the environment.
"""

SCRIPT = """\
import os, sys
rank, world = (os.environ.get(name) for name in ("RANK", "WORLD_SIZE"))
print(f"trained as rank {rank} of {world}", flush=True)
"""


def our_lines() -> list[tuple[str, str]]:
    """Return page and command of what starts allaboard on pages that no other test types as a whole."""
    return [
        (page, line)
        for page, line in LINES
        if page not in SHOWN
        and not SYNOPSIS.search(line)
        and any(our_words(words) is not None for words in simple_commands(line))
    ]


def is_typed_here(page: str, line: str) -> bool:
    return page != "docs/templates.md" and line.startswith("allaboard run ")


TYPED = [(page, line) for page, line in our_lines() if is_typed_here(page, line)]


OTHERS = [(page, line) for page, line in our_lines() if not is_typed_here(page, line)]


@pytest.mark.parametrize(("page", "line"), OTHERS, ids=[f"{p}: {line}" for p, line in OTHERS])
def test_a_command_that_is_not_typed_here_is_run_elsewhere(page: str, line: str) -> None:
    plain = re.sub(r"\s+#.*", "", f"{page}: {line}")
    at = elsewhere(line) or next((at for p, at in RUN_BY.items() if re.match(p, plain)), None)
    assert at is not None, f"no test runs: {line}"
    file, text = at
    assert text in (ROOT / "tests" / file).read_text()


def on_this_host(line: str) -> str:
    """Return the command with addresses that are free on this host, and with this home directory's files."""
    for port in re.findall(r"(?<=:)\d{4}\b|(?<=--metrics )\d+", line):
        line = line.replace(port, str(free_port()))
    return line.replace("node0:", "127.0.0.1:").replace("~/.config/", "")


@pytest.mark.parametrize(("page", "line"), TYPED, ids=[f"{p}: {line}" for p, line in TYPED])
def test_a_command_for_one_host_starts_the_script(page: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "notify.txt").write_text("json://127.0.0.1:9/never-reached\n")
    (tmp_path / "job.secret").write_text("0123456789abcdef" * 4)
    (tmp_path / "job.secret").chmod(0o600)
    printed = type_command(Typed(re.sub(r"\s+#.*", "", on_this_host(line)), ""), tmp_path)
    ranks = int((re.search(r"-n (\d+)", line) or ["", "1"])[1])
    assert printed.count("trained as rank") >= ranks, printed
    assert "exit code 0" in printed and "Traceback" not in printed, printed
    assert list(tmp_path.glob(".allaboard/*/report.html"))
