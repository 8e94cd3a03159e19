"""The report of 256 and of 4,096 ranks: in time, small, and those that stand out first."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from allaboard.faces.report.output_formats import MAX_PAGE_NBYTES, mask_run, render_html
from allaboard.faces.report.rank_grid import MAX_BOXES, MAX_RANKS, lay_out_grid
from allaboard.facts import Activity, RankState
from allaboard.feed.run_record import read_run_record
from browser import needs_browser, open_page
from large_runs import write_large_series
from recorded_runs import stopped, write_run


def large_run(folder: Path, ranks: int, points: int) -> Path:
    run = write_run(folder, ranks=ranks, findings=(stopped(),))
    write_large_series(run, ranks, points=points)
    return run


MAX_GROWTH_MB = 60
"""Memory that writing a report may take beyond what the process has; it takes some 5 MB."""


def peak_memory_mb() -> float:
    (line,) = re.findall(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    return int(line) / 1024


@pytest.mark.alone
def test_an_hour_of_256_ranks_is_written_in_time_and_little_memory(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 256, 1800)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here: proc(5)
    before_mb, began = peak_memory_mb(), time.process_time()
    page = render_html(read_run_record([run]), {})
    assert time.process_time() - began < 2.0
    assert peak_memory_mb() - before_mb < MAX_GROWTH_MB
    assert len(page.encode()) < MAX_PAGE_NBYTES


def test_4096_ranks_fit_on_a_page(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 4096, 40)
    page = render_html(read_run_record([run]), {})
    assert len(page.encode()) < MAX_PAGE_NBYTES / 2
    labels = re.findall(r'<text class="end" x="132"[^>]*>([^<]*)</text>', page)
    assert labels[0] == "rank 1 HANG001" and labels[-1] == "by their share"
    assert "worker 16 (2%), worker 17 (2%)" in page and "worker 5: " in page
    # The table begins with the ranks that stand out.
    rows = re.findall(r'<th scope="row">(worker \d+)</th><td class="words">([^<]*)</td>', page)
    assert rows[0] == ("worker 1", "HANG001, stopped")
    assert {name for name, why in rows[1:9] if why == "waits least"} == {
        f"worker {n}" for n in range(16, 24)
    }


def test_masked_ranks_stand_out_as_well(tmp_path: Path) -> None:
    record = mask_run(read_run_record([large_run(tmp_path / "run", 64, 60)]))
    page = render_html(record, {})
    assert "node-a" not in page and "worker 5: " in page


def states(activities: list[Activity]) -> list[RankState]:
    return [
        RankState(name=f"worker {n}", rank=n, activity=a, phase="training")
        for n, a in enumerate(activities)
    ]


def test_every_rank_has_its_cell() -> None:
    activities = [Activity.WAITING] * 1000
    activities[70] = Activity.STOPPED
    grid = lay_out_grid(states(activities))
    assert grid is not None
    width = sum(box.width for box in grid.boxes)
    assert round(width / grid.cell) == 1000
    (odd,) = [box for box in grid.boxes if box.activity is Activity.STOPPED]
    assert odd.title == "worker 70: stopped" and odd.letter_x and odd.y == round(grid.cell, 1)
    assert {box.title for box in grid.boxes if box.y == 0} == {"worker 0 to worker 63: waiting"}


def test_a_grid_of_the_most_different_ranks_stays_small() -> None:
    turns = states([list(Activity)[n % len(Activity)] for n in range(MAX_BOXES + 1)])
    grid = lay_out_grid(turns[:MAX_BOXES])
    assert grid is not None and len(grid.boxes) == MAX_BOXES
    assert lay_out_grid(turns) is None
    assert lay_out_grid(turns[:256]) is None
    assert lay_out_grid(states([Activity.DONE] * MAX_RANKS)) is not None
    assert lay_out_grid(states([Activity.DONE] * (MAX_RANKS + 1))) is None


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_it_fits_on_a_phone(tmp_path: Path, width: int, dark: bool) -> None:
    run = large_run(tmp_path / "run", 300, 60)
    (tmp_path / "page.html").write_text(render_html(read_run_record([run]), {}))
    with open_page(width=width, dark=dark) as page:
        page.set_content((tmp_path / "page.html").read_text())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".cells rect").count() >= 5
        assert page.locator(".rank-plots figure").count() == 2
        for place in (".timeline svg", ".cells svg", ".rank-plots svg"):
            box = page.locator(place).first.bounding_box()
            assert box is not None and box["height"] > 50
