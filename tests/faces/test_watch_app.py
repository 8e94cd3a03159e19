"""The screen of `watch`: what keys do, what it looks like, that it keeps up with thousands of ranks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import msgspec
import pytest

pytest.importorskip(
    "pytest_textual_snapshot", reason="not on this machine: pip install 'allaboard[watch]'"
)

from textual.pilot import Pilot
from textual.widgets import Markdown

from allaboard.faces.watch.app import WatchApp
from allaboard.faces.watch.finding_list import FindingList
from allaboard.faces.watch.line_view import LineView
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.feed.messages import FeedError, SnapshotMessage
from watched import PlayedSource, hanging_snapshot, healthy_snapshot, stacks, stopped_finding

DRAWN_BY = "8.2.8"
"""Version of textual, as in constraints-ci.txt, that has drawn the pictures: another draws a little
differently."""
MIN_CONTRAST = 4.5
"""Contrast of text that most people can read (WCAG 2.2, 1.4.3)."""
KEY_S = 0.1
"""Seconds within which a key is to be answered."""


def show(
    source: PlayedSource,
    scenario: Callable[[WatchApp, Pilot[Any]], Awaitable[None]],
    size: tuple[int, int] = (120, 36),
) -> WatchApp:
    app = WatchApp(source, lambda code: f"# {code}\n\nThe page of the rule.")

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await scenario(app, pilot)

    asyncio.run(asyncio.wait_for(run(), 60))
    return app


def screen_text(app: WatchApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def contrast(app: WatchApp, text: str) -> float:
    """The contrast of the piece that begins with this text, as WCAG 2.2 computes it."""
    pieces = [s for strip in app.screen._compositor.render_strips() for s in strip]
    (style, *_) = [s.style for s in pieces if s.text.strip().startswith(text)]
    assert style is not None and style.color is not None and style.bgcolor is not None
    lights = sorted(_luminance(c.get_truecolor()) for c in (style.color, style.bgcolor))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(colour: tuple[int, int, int]) -> float:
    linear = [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in (channel / 255 for channel in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_errors_stand_first_and_are_unfolded() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        lines = screen_text(app).splitlines()
        assert lines[0].startswith("torch · 3 ranks on 1 host")
        assert lines[1].startswith("stalled for 20 s")
        text = "\n".join(lines)
        assert text.index("kill -CONT 101") < text.index("rank  does")
        assert "state T for 12 s [/proc/101/stat]" in text

    show(PlayedSource(hanging_snapshot()), scenario)


def test_a_finding_folds_and_its_fix_is_copied() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("c")
        assert app.clipboard == "kill -CONT 101"
        app.query_one(FindingList).focus()
        await pilot.press("enter")
        await pilot.pause()
        text = screen_text(app)
        assert "state T for 12 s" not in text
        assert "error HANG001 stopped: worker 1 is stopped" in text

    show(PlayedSource(hanging_snapshot()), scenario)


def test_findings_that_are_not_listed_are_counted() -> None:
    snapshot = msgspec.structs.replace(
        hanging_snapshot(3, *(stopped_finding(summary=f"number {n}") for n in range(120))),
        findings_left_out=999_000,
    )

    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        findings = app.query_one(FindingList)
        shown = findings.option_count - 1
        findings.focus()
        await pilot.press("end")
        assert findings.highlighted == shown - 1  # the count is no finding
        left_out = len(snapshot.findings) - shown + 999_000
        assert f"and {left_out} more findings" in str(findings.get_option_at_index(shown).prompt)

    show(PlayedSource(snapshot), scenario)


def test_the_page_of_the_rule_opens_and_closes() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("p")
        await pilot.pause()
        assert isinstance(app.screen.query_one(Markdown), Markdown)
        assert "The page of the rule." in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "The page of the rule." not in screen_text(app)

    show(PlayedSource(hanging_snapshot()), scenario)


def test_one_key_brings_fresh_stacks() -> None:
    source = PlayedSource(hanging_snapshot())

    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("s")
        await pilot.pause()
        assert source.requests == 1
        assert "collecting the stacks of all ranks" in screen_text(app)
        app.take(stacks(7))
        await pilot.pause()
        text = screen_text(app)
        assert "stacks of 3 processes" in text
        assert "[1] data.py:7 in read" in text
        assert "collecting" not in text

    show(source, scenario)


def test_stacks_of_a_run_that_has_ended_come_from_its_journal() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("s")
        await pilot.pause()
        assert "[1] data.py:7 in read" in screen_text(app)

    show(PlayedSource(hanging_snapshot(outcome=None), is_live=False), scenario)


def test_ranks_are_filtered_sorted_and_searched_by_keys() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press("f")
        assert [r.rank for r in app._shown_ranks] == [1]
        assert "troubled, by rank" in screen_text(app)
        for _ in range(4):
            await pilot.press("f")
        await pilot.press("o")
        assert app._shown_ranks[0].rank == 1
        await pilot.press("slash", *"rank 4")
        await pilot.pause()
        assert [r.rank for r in app._shown_ranks] == [4]
        await pilot.press("enter")
        assert [r.rank for r in app._shown_ranks] == [4]
        await pilot.press("escape")
        await pilot.pause()
        assert len(app._shown_ranks) == 6

    show(PlayedSource(hanging_snapshot(6)), scenario)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("3", "a: 3 processes"),
        ("4", "links are tested between the hosts"),
        ("5", "no parameter server"),
        ("6", "all 3 ready after 1.6 s"),
    ],
)
def test_pages(key: str, text: str) -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        await pilot.press(key)
        await pilot.pause()
        assert text in screen_text(app)
        await pilot.press("1")
        await pilot.pause()
        assert text not in screen_text(app)

    show(PlayedSource(healthy_snapshot()), scenario)


def test_what_changes_is_shown() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        assert "HANG001" not in screen_text(app)
        app.take(SnapshotMessage(snapshot=hanging_snapshot()))
        await pilot.pause()
        assert "HANG001" in screen_text(app)
        app.take(SnapshotMessage(snapshot=healthy_snapshot()))
        await pilot.pause()
        assert "HANG001" not in screen_text(app)
        app.take(SourceChanged(text="connection lost; trying again", is_live=False))
        await pilot.pause()
        assert "not live" in screen_text(app)

    show(PlayedSource(healthy_snapshot()), scenario)


def test_a_feed_that_cannot_be_read_ends_the_screen_with_the_reason() -> None:
    class BrokenSource(PlayedSource):
        async def messages(self) -> Any:
            raise FeedError("127.0.0.1:1: the feed asks for the job's secret")
            yield

    source = BrokenSource()
    app = WatchApp(source, str)
    asyncio.run(asyncio.wait_for(app.run_async(headless=True), 30))
    assert app.failure.endswith("asks for the job's secret")
    assert source.is_closed


def test_a_narrow_and_a_tiny_terminal_survive() -> None:
    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        for key in ("2", "3", "1", "s", "f", "o", "slash", "escape", "p", "escape", "c"):
            await pilot.press(key)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "HANG001" in screen_text(app)

    show(PlayedSource(hanging_snapshot()), scenario, size=(20, 6))


def test_hostile_text_does_not_reach_the_terminal() -> None:
    finding = stopped_finding(summary="[bold]\x1b[2J evil", fix="rm\x1b]0;x\x07 [/x]")
    snapshot = hanging_snapshot(3, finding, command=("python", "[red]\x1bx.py"))
    ranks = tuple(
        msgspec.structs.replace(r, host="[@click=app.quit]a\x1b[0m") for r in snapshot.ranks
    )
    snapshot = msgspec.structs.replace(snapshot, ranks=ranks)

    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        text = screen_text(app)
        assert "\x1b" not in text
        assert "[bold]" in text and "[red]" in text
        await pilot.press("c")

    show(PlayedSource(snapshot), scenario)


def test_without_colours_letters_and_reverse_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        assert app.no_color
        assert "wXw" in screen_text(app)
        for piece in ("stalled for", "error HANG001", "w", "X", "no progress"):
            assert contrast(app, piece) > MIN_CONTRAST, piece

    show(PlayedSource(hanging_snapshot()), scenario)


def test_thousands_of_ranks_answer_a_key_at_once() -> None:
    """What a key does and drawing the screen after it; the fastest of three, since others may run beside."""
    snapshot = hanging_snapshot(4096)

    async def scenario(app: WatchApp, pilot: Pilot[Any]) -> None:
        assert app.query_one("#ranks", LineView).virtual_size.height == 4096
        actions: list[Callable[[], object]] = [
            app.action_order,
            app.action_filter,
            lambda: app.query_one("#ranks", LineView).scroll_end(animate=False),
            app.action_stacks,
            lambda: app.action_show_page("hosts"),
            lambda: app.take(SnapshotMessage(snapshot=snapshot)),
        ]
        for action in actions:
            times = []
            for _ in range(3):
                begun_at = time.monotonic()
                action()
                app.screen._compositor.render_strips()
                times.append(time.monotonic() - begun_at)
                await pilot.pause()
            assert min(times) < KEY_S, action

    show(PlayedSource(snapshot), scenario)


@pytest.mark.parametrize(
    ("name", "size", "keys"),
    [
        ("hang", (120, 30), ()),
        ("hang-80", (80, 24), ()),
        ("stacks", (100, 30), ("s",)),
        ("hosts", (100, 30), ("3",)),
    ],
)
def test_looks(
    name: str, size: tuple[int, int], keys: tuple[str, ...], snap_compare: Callable[..., bool]
) -> None:
    if version("textual") != DRAWN_BY:
        pytest.skip(f"not on this machine: the pictures are drawn by textual {DRAWN_BY}")
    source = PlayedSource(hanging_snapshot(24))
    app = WatchApp(source, str)

    async def settle(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        if "s" in keys:
            app.take(stacks(7))
            await pilot.pause()

    assert snap_compare(app, press=keys, terminal_size=size, run_before=settle)
