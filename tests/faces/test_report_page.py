"""The report of a run as a page: whole, half, of several hosts, hostile, large."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from allaboard.faces.report.activity_letters import LETTERS
from allaboard.faces.report.output_formats import MAX_PAGE_NBYTES, mask_run, render_html
from allaboard.faces.watch.activity_marks import MARKS
from allaboard.facts import Activity, Evidence
from allaboard.feed.messages import FeedError
from allaboard.feed.run_record import read_run_record
from recorded_runs import stopped, write_run

PAGES = {"HANG001": "# HANG001 stopped\n\nText.\n\n## Why it matters\nIt `waits` <b>forever</b>.\n"}
HOSTILE = (
    "</title></style></pre><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\x1b[31m"
)
VOID_TAGS = {"meta", "br", "img", "link", "input", "hr"}


class Outline(HTMLParser):
    """What a page is made of: its tags, its attributes and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.text = " ".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page_of(*folders: Path) -> tuple[str, Outline]:
    page = render_html(read_run_record(folders), PAGES)
    outline = Outline(page)
    assert outline.open == []
    return page, outline


def test_a_failed_run_is_told_in_three_sentences(tmp_path: Path) -> None:
    _, outline = page_of(write_run(tmp_path / "run", findings=(stopped(),)))
    text = outline.text
    assert "The run failed" in text
    assert (
        "The run (4 ranks of torch on node-a) failed after 1 min 0 s: 1 of 4 workers failed."
        in text
    )
    assert "Worker 1 is stopped (SIGSTOP or Ctrl-Z) [HANG001]." in text
    assert "It did 400 steps" in text
    assert "kill -CONT 101" in text and "found after 30 s" in text
    assert "waits <b>forever</b>" in re.sub(r"\s+", " ", text)


def test_it_shows_where_everybody_was_when_it_was_found(tmp_path: Path) -> None:
    _, outline = page_of(write_run(tmp_path / "run", findings=(stopped(),)))
    assert "Ranks, when the first fault was found" in outline.text
    assert "data.py:7 in load" in outline.text and "exit code 1" in outline.text
    assert "load · rank 1 · data.py:7" in outline.text
    assert "all_reduce · ranks 0,2-3" in outline.text
    classes = {value for name, value in outline.attributes if name == "class"}
    assert {"a-stopped", "a-waiting", "a-training"} <= classes
    assert ("href", "#finding-1") in outline.attributes and (
        "id",
        "finding-1",
    ) in outline.attributes


def test_differences_of_the_environment_come_first(tmp_path: Path) -> None:
    _, outline = page_of(write_run(tmp_path / "run"))
    assert "In these the ranks differ" in outline.text
    assert "rank 0: 3.12.1" in outline.text
    assert "version torch" in outline.text and "0123456789ab" in outline.text
    assert "-n 4" in outline.text


def test_a_healthy_run_says_so(tmp_path: Path) -> None:
    page, outline = page_of(write_run(tmp_path / "run"))
    assert '<h1 class="well">The run completed</h1>' in page
    assert "Nothing was found that needs attention." in outline.text
    assert "Missing" not in outline.text and "Ranks, when" not in outline.text


def test_every_resource_of_the_series_has_its_plot(tmp_path: Path) -> None:
    _, outline = page_of(write_run(tmp_path / "run"))
    for title in ("CPU cores in use", "Memory of all ranks", "Network"):
        assert title in outline.text
    text = re.sub(r"\s+", " ", outline.text)
    assert re.search(r"Space in use on the fullest disk .*highest 30\.1 GB", text)


def test_nothing_can_be_loaded_or_run(tmp_path: Path) -> None:
    page, outline = page_of(write_run(tmp_path / "run", findings=(stopped(),)))
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert style is not None and policy is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1].startswith(
        f"default-src &#39;none&#39;; style-src &#39;sha256-{digest}&#39;"
    ) or (policy[1].startswith(f"default-src 'none'; style-src 'sha256-{digest}'"))
    assert not {"script", "link", "img", "iframe", "object"} & set(outline.tags)
    names = {name for name, _ in outline.attributes}
    assert not {"src", "style", "onload", "onclick"} & names
    links = [value for name, value in outline.attributes if name in ("href", "xlink:href")]
    assert links and all(link.startswith("#") for link in links)
    assert "url(" not in page and "@import" not in page


def hostile_run(folder: Path) -> Path:
    finding = stopped(host=HOSTILE, summary=HOSTILE, evidence=(Evidence(HOSTILE, HOSTILE),))
    run = write_run(folder, host=HOSTILE, findings=(finding,), command=("python", HOSTILE))
    (run / "logs" / "worker-1.log").write_text(f"Traceback {HOSTILE}\n")
    return run


def test_hostile_names_paths_and_log_lines_stay_text(tmp_path: Path) -> None:
    page, outline = page_of(hostile_run(tmp_path / "run"))
    assert not {"script", "img"} & set(outline.tags)
    assert "{{ 7*7 }}" in outline.text and "\x1b" not in page
    assert "Traceback </title></style></pre><script>alert(1)</script>" in outline.text
    plain = page_of(write_run(tmp_path / "plain", findings=(stopped(),)))[1]
    assert set(outline.tags) <= set(plain.tags) | {"details", "summary"}


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_a_browser_shows_it_without_a_complaint(tmp_path: Path) -> None:
    """The console would name what the page's policy refuses: its own style too, if the hash were wrong."""
    page = tmp_path / "report.html"
    page.write_text(page_of(hostile_run(tmp_path / "run"))[0], encoding="utf-8")
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(page.read_text().replace("</head>", "<script>1</script></head>"))
    dom, complaints = in_chromium(page, tmp_path)
    assert "The run failed" in dom and "<script" not in dom and complaints == []
    # The same page with a script of somebody else: it is refused, and that is seen here.
    assert "Content Security Policy" in " ".join(in_chromium(spoilt, tmp_path)[1])


def in_chromium(page: Path, folder: Path) -> tuple[str, list[str]]:
    """Return the page as the browser has it, and the lines of its console."""
    assert CHROMIUM is not None
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--no-first-run",
    )
    network = ("--disable-background-networking", "--disable-component-update", "--no-pings")
    done = subprocess.run(
        [CHROMIUM, *flags, *network, f"--user-data-dir={folder}/chromium", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_half_a_folder_says_what_is_missing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", findings=(stopped(),))
    (run / "report.json").unlink()
    (run / "series.jsonl").unlink()
    with (run / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind": "vie\n')
    _, outline = page_of(run)
    assert "run has no report.json that can be read" in outline.text
    assert "The run ended, and how is not known" in outline.text
    assert "no series.jsonl: there are no plots" in outline.text
    assert "1 line of run/journal.jsonl cannot be read" in outline.text
    assert "worker 1 is stopped" in outline.text and "Timeline" not in outline.text


def test_a_run_that_goes_on_is_not_said_to_have_ended(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", findings=(stopped(),))
    (run / "report.json").unlink()
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join(lines[:-1]))
    text = page_of(run)[1].text
    assert "The run stood still when it was last seen" in text
    assert "the run still goes on, allaboard was killed, or" in text


def test_a_run_without_a_picture_has_the_figures_of_its_series(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "report.json").unlink()
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join(lines[:2]))
    text = page_of(run)[1].text
    assert "The run was running when it was last seen, after 59 s." in text
    assert "It did 590 steps, a step took 50 ms (median), the last loss was" in text
    assert "has no picture of the ranks" in text and "0 ranks" not in text


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(FeedError, match="no journal of a run"):
        read_run_record([tmp_path / "run"])


def test_folders_of_some_hosts_make_one_report(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", ranks=4, host="node-a", findings=(stopped(),))
    same = write_run(tmp_path / "same", ranks=2, host="node-a")
    record = read_run_record([same, first])
    assert len(record.snapshot.ranks) == 4 and len(record.notes) == 2
    assert [f.rule for f in record.findings] == ["HANG001"]
    other = write_run(tmp_path / "other", ranks=3, host="node-z")
    with pytest.raises(FeedError, match="is not of the same run"):
        read_run_record([first, other])


def test_a_rank_that_is_nowhere_is_missing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    journal = run / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"launched":', '"launched":9,"_":'))
    text = page_of(run)[1].text
    assert "the run has 9 ranks, and these folders tell of 4" in text


def test_hosts_addresses_and_the_user_are_masked(tmp_path: Path) -> None:
    finding = stopped(
        host="gpu-7.corp.example",
        evidence=(Evidence("refused by 10.1.2.3:29500 and [fe80::12]", "/home/jane/train.py"),),
        fix="ssh gpu-7 kill -CONT 101; ping 127.0.0.1",
    )
    run = write_run(tmp_path / "run", host="gpu-7.corp.example", findings=(finding,))
    record = mask_run(read_run_record([run]))
    page = render_html(record, PAGES)
    for secret in ("gpu-7", "corp.example", "10.1.2.3", "fe80::12", "jane"):
        assert secret not in page
    assert "host-0" in page and "address-0:29500" in page and "127.0.0.1" in page
    assert "/home/user/train.py" in page


def test_a_host_that_is_called_like_an_outcome_masks_no_outcome(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", host="failed", findings=(stopped(host="failed"),))
    record = mask_run(read_run_record([run]))
    assert record.report is not None and record.report.outcome == "failed"
    assert {r.host for r in record.snapshot.ranks} == {"host-0"}


def test_passwords_are_never_in_it(tmp_path: Path) -> None:
    finding = stopped(evidence=(Evidence("db_password=hunter23 WANDB_API_KEY=0123abcd45", "env"),))
    run = write_run(tmp_path / "run", findings=(finding,))
    (run / "logs" / "worker-1.log").write_text("login https://jane:hunter22@host/x\n")
    record = read_run_record([run])
    page = render_html(record, PAGES)
    assert "hunter22" not in page and "hunter23" not in page and "worker-1.log" in page
    assert "0123abcd45" not in render_html(mask_run(record), PAGES)


def test_a_large_run_stays_small(tmp_path: Path) -> None:
    findings = tuple(
        stopped(summary=f"worker 1 is stopped, {n} times, " + "far too long " * 200)
        for n in range(150)
    )
    run = write_run(tmp_path / "run", ranks=256, findings=findings)
    began = time.process_time()
    page, outline = page_of(run)
    assert time.process_time() - began < 2.0
    assert len(page.encode()) < MAX_PAGE_NBYTES
    assert "more findings" in outline.text and "more ranks" in outline.text
    # All ranks but one did the same: they share a lane.
    assert "ranks 0,2-255" in outline.text


def test_every_activity_has_its_letter_as_in_watch() -> None:
    assert {a: m.letter for a, m in MARKS.items()} == LETTERS
    assert set(LETTERS) == set(Activity)
