"""What `watch` says of a run, without a screen."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from allaboard.faces.watch.activity_marks import MARKS
from allaboard.faces.watch.detail_pages import (
    host_lines,
    link_lines,
    note_lines,
    server_lines,
    stack_lines,
)
from allaboard.faces.watch.figures import format_duration, format_rate, format_step_time
from allaboard.faces.watch.line_by_line import follow_line_by_line
from allaboard.faces.watch.once import snapshot_json, snapshot_text
from allaboard.faces.watch.rank_grid import grid_lines
from allaboard.faces.watch.rank_rows import (
    COLUMNS,
    FILTERS,
    ORDERS,
    cells,
    choose_columns,
    header,
    select_ranks,
)
from allaboard.faces.watch.run_source import RunSource
from allaboard.faces.watch.run_summary import concerns, headline, is_well, title, wait_of
from allaboard.faces.watch.step_sparkline import STALL_MARK, sparkline
from allaboard.faces.watch.watch_state import WatchState
from allaboard.facts import (
    Activity,
    GpuState,
    LinkState,
    LinkSummary,
    ResourceState,
    RestartState,
    ServerState,
    Snapshot,
)
from allaboard.feed.messages import FindingMessage
from watched import (
    AT,
    PlayedSource,
    course,
    hanging_snapshot,
    healthy_snapshot,
    stacks,
    stopped_finding,
)


def test_a_healthy_run_says_that_it_moves() -> None:
    snapshot = healthy_snapshot()
    assert is_well(snapshot)
    assert title(snapshot) == "torch · 3 ranks on 1 host · python train.py"
    assert (
        headline(snapshot)
        == "running · step 400 · 20 steps/s · 50 ms a step · waiting 8% · 1:05 min"
    )
    assert concerns(snapshot) == []
    assert "nothing is wrong" in snapshot_text(snapshot, 100)


def test_a_hang_says_who_holds_it_up_and_since_when() -> None:
    snapshot = hanging_snapshot()
    assert not is_well(snapshot)
    assert headline(snapshot).startswith("stalled for 20 s · step 400")
    assert concerns(snapshot)[:2] == ["no progress for 20 s", "worker 1 on a: stopped"]
    assert wait_of(snapshot.ranks[0]) == "worker 1 (all_reduce 20 s)"
    assert wait_of(snapshot.ranks[1]) == "2 wait for it"
    text = snapshot_text(snapshot, 100)
    assert text.index("error HANG001") < text.index("rank  ")
    assert "kill -CONT 101" in text


def test_a_resolved_finding_is_well_and_a_warning_too() -> None:
    over = stopped_finding(over="2026-11-25T12:01:00Z")
    running = msgspec.structs.replace(healthy_snapshot(), findings=(over,))
    assert is_well(running)
    assert "1 resolved finding" in snapshot_text(running, 100)


@pytest.mark.parametrize("outcome", ["failed", "hang", "roll-call-failed", "interrupted"])
def test_a_run_that_ended_badly_is_not_well(outcome: str) -> None:
    run = msgspec.structs.replace(healthy_snapshot().run, outcome=outcome, reason="why")
    snapshot = msgspec.structs.replace(healthy_snapshot(), run=run)
    assert not is_well(snapshot)
    assert concerns(snapshot)[0] == f"{outcome}: why"


def test_json_is_the_snapshot() -> None:
    snapshot = hanging_snapshot()
    assert msgspec.convert(json.loads(snapshot_json(snapshot)), Snapshot) == snapshot


def test_hostile_names_stay_text() -> None:
    snapshot = healthy_snapshot(command=("python", "\x1b[2J\nevil"))
    ranks = tuple(
        msgspec.structs.replace(r, host="a\x1b]0;x\x07", file="/x/\x1b.py", line=1)
        for r in snapshot.ranks
    )
    snapshot = msgspec.structs.replace(snapshot, ranks=ranks)
    assert "\x1b" not in snapshot_text(snapshot, 200)
    assert "\x1b" not in title(snapshot)


def test_every_activity_has_a_letter_of_its_own() -> None:
    assert set(MARKS) == set(Activity)
    assert len({mark.letter for mark in MARKS.values()}) == len(Activity)


def test_the_grid_marks_those_who_are_awaited() -> None:
    lines = grid_lines(hanging_snapshot(3), 80)
    assert [text for text, _ in lines[0]] == ["w", "X", "w"]
    assert "reverse" in lines[0][1][1]
    assert "".join(text for text, _ in lines[-1]) == "w waiting 2  X stopped 1"


def test_thousands_of_ranks_fit_and_are_numbered() -> None:
    lines = grid_lines(hanging_snapshot(4096), 118)
    rows = ["".join(text for text, _ in line) for line in lines[:-1]]
    assert all(len(row) <= 118 for row in rows)
    assert rows[0].startswith("   0 wXwwwwwwww wwwwwwwwww")
    assert rows[1].startswith(" 100 ")
    assert sum(row.count("w") for row in rows) == 4095


def test_each_host_has_its_line() -> None:
    ranks = healthy_snapshot(4).ranks
    ranks = tuple(msgspec.structs.replace(r, host=f"node{r.rank % 2}") for r in ranks)
    lines = grid_lines(msgspec.structs.replace(healthy_snapshot(4), ranks=ranks), 80)
    assert ["".join(t for t, _ in line) for line in lines[:-1]] == ["node0 TT", "node1 TT"]


def test_slow_steps_and_stalls_stand_out() -> None:
    pieces = sparkline(course().points, 80)
    text = "".join(t for t, _ in pieces)
    assert text == f"step ▁▁▁▁█▁▁▁{STALL_MARK * 3} median 50 ms, longest 200 ms, 1 slow"
    assert [t for t, style in pieces if style == "bold red"] == ["█", *STALL_MARK * 3]
    assert sparkline((), 80) == []
    long_run = [course().points[0]] * 500
    assert sum(len(text) for text, _ in sparkline(long_run, 80)) == 80


def test_ranks_are_filtered_sorted_and_searched() -> None:
    ranks = hanging_snapshot(5).ranks
    assert [r.rank for r in select_ranks(ranks, "troubled", "rank", "")] == [1]
    assert [r.rank for r in select_ranks(ranks, "waiting", "rank", "")] == [0, 2, 3, 4]
    assert select_ranks(ranks, "all", "urgency", "")[0].rank == 1
    assert [r.rank for r in select_ranks(ranks, "all", "rank", "rank 3")] == [3]
    assert [r.rank for r in select_ranks(ranks, "all", "rank", "STOPPED")] == [1]
    for filter_name in FILTERS:
        for order_name in ORDERS:
            select_ranks(ranks, filter_name, order_name, "")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_the_table_fits_every_width(width: int) -> None:
    ranks = hanging_snapshot(3).ranks
    columns = choose_columns(ranks, width)
    assert {"rank", "does", "waits for", "at"} <= {c.title for c in columns}
    line = " ".join(cells(ranks[0], columns))
    assert len(header(columns)) == len(line)
    assert width < 60 or len(line) <= width
    assert len(columns) <= len(COLUMNS)


def test_whom_a_rank_waits_for_and_its_line_come_before_figures() -> None:
    ranks = tuple(
        msgspec.structs.replace(
            r, memory_nbytes=1 << 30, loss=0.5, file="train.py", line=123, function="update_ema"
        )
        for r in hanging_snapshot(3).ranks
    )
    texts = {width: " ".join(cells(ranks[0], choose_columns(ranks, width))) for width in (100, 160)}
    assert "memory" not in header(choose_columns(ranks, 100))
    assert "memory" in header(choose_columns(ranks, 160))
    for width, text in texts.items():
        assert wait_of(ranks[0]) in text and "train.py:123 in update_ema" in text
        assert len(text) <= width


def test_why_the_workers_were_started_again_stays_in_sight() -> None:
    snapshot = healthy_snapshot()
    restart = RestartState(what="round 1", reason="worker 2 raised ValueError; restart 1 of 3")
    run = msgspec.structs.replace(snapshot.run, restarts=(restart,), round=1)
    assert concerns(msgspec.structs.replace(snapshot, run=run)) == [
        "started again, round 1: worker 2 raised ValueError; restart 1 of 3"
    ]


def test_the_title_leaves_out_folders_of_program_and_script() -> None:
    snapshot = healthy_snapshot()
    run = msgspec.structs.replace(
        snapshot.run, command=("/opt/env/bin/torchrun", "/home/a/train.py", "--data", "/mnt/data")
    )
    shown = title(msgspec.structs.replace(snapshot, run=run))
    assert shown.endswith(" · torchrun train.py --data /mnt/data")


def test_the_pages_besides_the_ranks() -> None:
    snapshot = healthy_snapshot()
    host = msgspec.structs.replace(
        snapshot.hosts[0],
        resources=(ResourceState(name="host memory", used=95e9, limit=100e9),),
        gpus=(GpuState(index=0, name="H100", busy=0.5, memory_nbytes=1 << 30, memory_limit_nbytes=2 << 30),),
        clock_ahead_s=0.5,
    )  # fmt: skip
    links = (
        LinkState(source="a", target="b", works=False, answer="silent", address="b:1"),
        LinkState(source="b", target="a", works=True, seconds=0.001, rate=1e9),
    )
    snapshot = msgspec.structs.replace(
        snapshot, hosts=(host,), links=links, links_working=LinkSummary(count=9, seconds=0.001, rate=1e9),
        servers=(
            ServerState(name="ps 0", host="a", busy=0.9, workers=2), ServerState(name="ps 1", alive=False),
        ),
    )  # fmt: skip
    assert "95%" in "".join(host_lines(snapshot)) and "H100: 50% busy" in "".join(
        host_lines(snapshot)
    )
    assert concerns(snapshot) == ["a: host memory is 95% full (95.0 GB of 100 GB)"]
    assert link_lines(snapshot)[0] == "a -> b: BROKEN: silent (b:1)"
    assert server_lines(snapshot)[0].startswith("ps 0 on a: 90% busy")
    assert "GONE" in server_lines(snapshot)[1]
    state = WatchState()
    assert note_lines(state) == ["nothing yet"]
    assert "press s" in stack_lines(state, False)[0]
    state.apply(stacks(1))
    assert any(
        line.strip().startswith("[1] data.py:7 in read") for line in stack_lines(state, False)
    )


def test_figures() -> None:
    assert [format_duration(s) for s in (0.4, 61, 7261)] == ["0 s", "1:01 min", "2:01 h"]
    assert [format_step_time(s) for s in (None, 0.0123, 0.5, 2.0)] == [
        "-",
        "12.3 ms",
        "500 ms",
        "2 s",
    ]
    assert [format_rate(r) for r in (0.0, 12.345)] == ["-", "12.3"]


def test_lines_for_a_terminal_that_draws_nothing() -> None:
    source = PlayedSource(
        healthy_snapshot(), healthy_snapshot(), hanging_snapshot(), hanging_snapshot()
    )
    source.played += [FindingMessage(finding=stopped_finding())] * 2
    lines: list[str] = []
    playing: RunSource = source  # type: ignore[assignment]
    last = asyncio.run(follow_line_by_line(playing, lines.append, 100, now=lambda: 5.0))
    assert last is not None and not is_well(last)
    assert sum("running" in line for line in lines) == 1
    assert sum("stalled" in line for line in lines) == 1
    assert lines[0] == "watching /runs/j"
    assert sum(line.startswith(f"{AT} error HANG001 stopped: worker 1") for line in lines) == 1
