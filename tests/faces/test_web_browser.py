"""The page in a real browser: hostile text stays text, keys work, names are accessible."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import msgspec
import pytest

from allaboard.faces.watch.run_source import SourceChanged
from allaboard.faces.web.page_access import page_url
from allaboard.faces.web.page_server import PageSettings
from allaboard.faces.web.serve_run import serve_run
from allaboard.facts import Evidence, Frame, Place, Snapshot, Who
from allaboard.facts.diagnosis import Branch
from allaboard.feed.messages import Message, Note, Stacks
from allaboard.options.web_options import open_page_port
from browser import expect, needs_browser, open_page
from watched import AT, PlayedSource, hanging_snapshot, healthy_snapshot, stopped_finding

HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'


class StayingSource(PlayedSource):
    """Plays its messages, and stays live; stacks are answered at once."""

    def __init__(self, *snapshots: Snapshot, tree: tuple[Branch, ...] = ()) -> None:
        super().__init__(*snapshots)
        self._tree = tree
        self._queue: asyncio.Queue[Message] = asyncio.Queue()

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        for message in self.played:
            yield message
        while True:
            yield await self._queue.get()

    def request_stacks(self) -> int:
        self._queue.put_nowait(Stacks(id=7, sampled_at=AT, tree=self._tree, sampled=3))
        return 7


@contextmanager
def served(source: PlayedSource) -> Iterator[str]:
    """The URL of a page that shows this source; it is served in a thread."""
    port = open_page_port("0", None)
    loop = asyncio.new_event_loop()
    started = threading.Event()
    settings = PageSettings(port.listener, port.token, frozenset({"127.0.0.1"}))
    task = loop.create_task(
        serve_run(source, settings, lambda code: HOSTILE + code, on_start=started.set)
    )

    def run() -> None:
        loop.run_until_complete(asyncio.wait([task]))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(10)
    try:
        yield page_url("127.0.0.1", port.listener.getsockname()[1], port.token)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)


def hostile_source() -> StayingSource:
    finding = stopped_finding(
        summary=HOSTILE, evidence=(Evidence(HOSTILE, HOSTILE),), fix=HOSTILE,
        who=(Who(index=1, rank=1, host=HOSTILE, pid=101),), where=Place(file=HOSTILE, line=1),
    )  # fmt: skip
    snapshot = hanging_snapshot(3, finding, command=("python", HOSTILE), reason=HOSTILE)
    ranks = tuple(
        msgspec.structs.replace(r, host=HOSTILE, file=HOSTILE, line=1, function=HOSTILE)
        for r in snapshot.ranks
    )
    hosts = tuple(msgspec.structs.replace(h, host=HOSTILE) for h in snapshot.hosts)
    snapshot = msgspec.structs.replace(snapshot, ranks=ranks, hosts=hosts)
    tree = (Branch(((0, 2),), (Frame(HOSTILE, 3, HOSTILE, HOSTILE),), (), (HOSTILE,)),)
    source = StayingSource(snapshot, tree=tree)
    source.played.append(Note(noted_at=AT, text=HOSTILE))
    return source


@needs_browser
def test_hostile_text_stays_text() -> None:
    with served(hostile_source()) as url, open_page() as page:
        page.goto(url)
        page.wait_for_selector("details.finding[open]")
        page.keyboard.press("s")
        page.wait_for_selector("#flame .call")
        page.click("#grid")
        page.click(".rule-page > summary")
        page.wait_for_selector("pre.page")
        page.wait_for_timeout(300)
        assert page.evaluate("window.hurt") is None
        assert page.evaluate("document.querySelectorAll('img, body script, iframe').length") == 0
        for place in ("#title", "#findings", "#hosts", "#notes", "#flame", "#ranks", "pre.page"):
            assert "<img src=x" in page.locator(place).first.inner_text(), place
        page.click("button.copy")
        assert page.evaluate("navigator.clipboard.readText()") == HOSTILE


@needs_browser
def test_keys_and_buttons_do_what_they_say() -> None:
    source = StayingSource(hanging_snapshot(6))
    with served(source) as url, open_page() as page:
        page.goto(url)
        page.wait_for_selector("#ranks tbody tr")
        assert "token" not in page.url  # not left in the address bar
        page.keyboard.press("c")
        page.wait_for_selector("#toast.on")
        assert page.evaluate("navigator.clipboard.readText()") == "kill -CONT 101"
        page.keyboard.press("/")
        page.keyboard.type("worker 3")
        expect(page.locator("#ranks tbody tr")).to_have_count(1)
        page.fill("#search", "")
        page.keyboard.press("Escape")
        page.keyboard.press("f")
        expect(page.locator("#filter")).to_have_value("troubled")
        expect(page.locator("#shown")).to_contain_text("1 of 1 ranks")
        page.focus("#grid")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#selected")).to_contain_text("worker 1")
        page.select_option("#metric", "step")
        expect(page.locator("#legend")).to_contain_text("400")
        assert "worker 1" in page.inner_text("#waits") and "all_reduce" in page.inner_text("#waits")
        before = page.evaluate("document.documentElement.dataset.theme")
        page.keyboard.press("Escape")
        page.locator("h1").click()
        page.keyboard.press("d")
        assert page.evaluate("document.documentElement.dataset.theme") != before
        page.reload()  # the token is remembered in this tab
        page.wait_for_selector("#ranks tbody tr")


@needs_browser
def test_without_the_token_the_page_asks_for_it() -> None:
    with served(StayingSource(healthy_snapshot())) as url, open_page() as page:
        page.goto(url.partition("#")[0])
        page.wait_for_selector("#login:not([hidden])")
        assert page.locator("#panels").is_hidden()
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#login-why")).to_contain_text("not that")
        page.fill("#token", url)
        page.keyboard.press("Enter")
        page.wait_for_selector("#ranks tbody tr")
        assert page.locator("#login").is_hidden()


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_names_and_contrasts_are_accessible(width: int, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    tree = (Branch(((0, 2),), (Frame("/home/u/train.py", 3, "step"),), ()),)
    with (
        served(StayingSource(hanging_snapshot(), tree=tree)) as url,
        open_page(width, 800, dark) as page,
    ):
        # The checker is a script that is evaluated in the page, which its policy forbids to others.
        page.goto(url)
        page.wait_for_selector("#ranks tbody tr")
        page.keyboard.press("s")
        page.wait_for_selector("#flame .call")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        results = Axe().run(page)
        serious = [
            f"{v['id']}: {v['nodes'][0]['html'][:120]} {v['nodes'][0]['failureSummary']}"
            for v in results.response["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert serious == []


@needs_browser
def test_a_hundred_thousand_ranks_are_drawn() -> None:
    rank = healthy_snapshot(1).ranks[0]
    ranks = tuple(
        msgspec.structs.replace(rank, name=f"worker {n}", rank=n, host=f"h{n // 8}")
        for n in range(100_000)
    )
    snapshot = msgspec.structs.replace(healthy_snapshot(1), ranks=ranks)
    with served(StayingSource(snapshot)) as url, open_page() as page:
        page.goto(url)
        page.wait_for_selector("#ranks tbody tr", timeout=60_000)
        label = page.get_attribute("#grid", "aria-label") or ""
        assert "100000 ranks" in label
        page.select_option("#grouping", "host")
        expect(page.locator("#grid")).to_have_attribute("aria-label", re.compile("12500 hosts"))
