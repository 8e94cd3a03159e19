"""A real job with its page: a stopped worker is named in the browser within seconds, and the page outlives
the run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser import expect, needs_browser, open_page

JOB = Path(__file__).parent / "jobs/torch_watched.py"
ALLABOARD = (sys.executable, "-m", "allaboard")
FOUND_WITHIN_S = 5.0


@contextmanager
def run_with_page(
    folder: Path, steps: int, *options: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The job and the URL of its page."""
    job = subprocess.Popen(
        [*ALLABOARD, "run", "--grace", "1", "--run-dir", str(folder), "-n", "2", "--web=0", *options,
         str(JOB)],
        env={**os.environ, "STEPS": str(steps)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert job.stderr is not None
    try:
        line = job.stderr.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", line)
        assert url, line
        yield job, url[0]
    finally:
        if job.poll() is None:
            job.send_signal(signal.SIGTERM)
        job.communicate(timeout=120)


def wait_for(folder: Path, what: str) -> dict[str, object]:
    """The newest snapshot in which the run has this phase."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        with contextlib.suppress(ValueError):
            looked = subprocess.run(
                [*ALLABOARD, "watch", str(folder), "--once", "--format", "json"],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            snapshot: dict[str, object] = json.loads(looked.stdout)
            if re.search(what, looked.stdout):
                return snapshot
    raise AssertionError(f"never {what}")


def page_processes(folder: Path) -> list[int]:
    """The processes that serve the page of this run."""
    pids = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
            if any(w.startswith(b"--web=fd://") for w in words) and os.fsencode(folder) in words:
                pids.append(int(entry.name))
    return pids


@pytest.mark.alone  # it must be seen soon
@needs_browser
def test_a_stopped_worker_is_seen_opened_and_its_fix_copied(tmp_path: Path) -> None:
    with run_with_page(tmp_path, 100_000) as (job, url), open_page() as page:
        page.goto(url, wait_until="domcontentloaded")
        expect(page.locator("#legend")).to_contain_text("training 2", timeout=90_000)
        expect(page.locator("#phase")).to_have_text("running")
        snapshot = wait_for(tmp_path, '"activity": *"training"')
        ranks = snapshot["ranks"]
        assert isinstance(ranks, list)
        victim = ranks[1]["pid"]
        os.kill(victim, signal.SIGSTOP)
        try:
            finding = page.locator("details.finding", has_text="HANG001")
            expect(finding).to_be_visible(timeout=FOUND_WITHIN_S * 1000)
            expect(finding.locator("summary").first).to_contain_text("worker 1 is stopped")
            if finding.get_attribute("open") is None:
                finding.locator("summary").first.click()
            expect(finding.locator("pre.command")).to_have_text(f"kill -CONT {victim}")
            finding.locator("button.copy").click()
            assert page.evaluate("navigator.clipboard.readText()") == f"kill -CONT {victim}"
            expect(page.locator("#waits")).to_contain_text("worker 1", timeout=20_000)
            finding.locator(".rule-page > summary").click()
            expect(finding.locator("pre.page")).to_contain_text("HANG001")
            page.keyboard.press("s")
            expect(page.locator("#flame .call").first).to_be_visible(timeout=20_000)
        finally:
            os.kill(victim, signal.SIGCONT)
        expect(page.locator("details.resolved", has_text="HANG001")).to_be_visible(timeout=20_000)
        job.send_signal(signal.SIGTERM)
        expect(page.locator("#notice")).to_contain_text("has ended", timeout=60_000)
        expect(page.locator("#phase")).to_have_text("interrupted")


@needs_browser
def test_a_browser_that_is_closed_and_a_run_that_ends_leave_nothing_behind(tmp_path: Path) -> None:
    with run_with_page(tmp_path, 60, "--warm") as (job, url):
        with open_page() as page:
            page.goto(url, wait_until="domcontentloaded")
            expect(page.locator("#ranks tbody tr").first).to_be_visible(timeout=60_000)
            assert page_processes(tmp_path)
        assert job.wait(timeout=120) == 0
    deadline = time.monotonic() + 30
    while page_processes(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert page_processes(tmp_path) == []
    assert (tmp_path / "page.log").read_text() == ""
    token = url.partition("token=")[2]
    for file in tmp_path.rglob("*"):  # a folder is sent to colleagues
        assert not file.is_file() or token.encode() not in file.read_bytes(), file


def test_a_server_whose_run_is_killed_ends_too(tmp_path: Path) -> None:
    with run_with_page(tmp_path, 100_000, "--warm") as (job, _):
        wait_for(tmp_path, '"ranks": *')
        deadline = time.monotonic() + 30
        while not page_processes(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert page_processes(tmp_path)
        job.kill()
    deadline = time.monotonic() + 30
    while page_processes(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert page_processes(tmp_path) == []
