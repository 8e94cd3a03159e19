"""What the page is sent, and who may read it."""

from __future__ import annotations

import json

import msgspec
import pytest

from allaboard.faces.web.activity_timeline import ActivityTimeline
from allaboard.faces.web.page_access import (
    is_expected_host,
    is_loopback,
    is_same_origin,
    page_url,
    tokens_match,
)
from allaboard.faces.web.page_messages import (
    LanesRequest,
    Login,
    PageStacksRequest,
    View,
    decode_page_request,
)
from allaboard.faces.web.page_state import PageState
from allaboard.faces.web.wait_groups import rank_ranges, wait_groups
from allaboard.facts import Activity, Evidence, RankState
from allaboard.feed.messages import SnapshotMessage
from allaboard.feed.series import SeriesMembers, SeriesPoint
from watched import hanging_snapshot, healthy_snapshot, stacks, stopped_finding


def new_state() -> PageState:
    return PageState(lambda code: f"page of {code}")


def test_a_token_lets_in_and_nothing_else_does() -> None:
    assert tokens_match("secret", "secret")
    assert not any(tokens_match(t, "secret") for t in ("", "Secret", "secret ", "\udcff"))
    assert page_url("::1", 80, "t") == "http://[::1]:80/#token=t"
    assert page_url("a", 80, "t", is_tls=True).startswith("https://a:80/#")


def test_foreign_pages_and_names_are_refused() -> None:
    assert is_same_origin("http://127.0.0.1:1", "127.0.0.1:1", False)
    assert is_same_origin(None, "127.0.0.1:1", False)
    for origin in ("http://evil.example", "null", "https://127.0.0.1:1", "http://127.0.0.1:2", ""):
        assert not is_same_origin(origin, "127.0.0.1:1", False), origin
    names = {"127.0.0.1", "localhost", "::1"}
    for host in ("127.0.0.1:8701", "localhost:9", "LOCALHOST", "[::1]:8701", "[::1]"):
        assert is_expected_host(host, names), host
    for host in ("evil.example:8701", "", "127.0.0.1.evil.example", "localhost.evil:1"):
        assert not is_expected_host(host, names), host
    assert is_expected_host("node0:8701", ())
    assert is_loopback("127.0.0.9") and not is_loopback("0.0.0.0") and not is_loopback("10.0.0.1")


def test_requests_are_read_and_nonsense_is_none() -> None:
    assert decode_page_request('{"kind":"login","token":"t"}') == Login(token="t")
    assert decode_page_request('{"kind":"view","metric":"step"}') == View(metric="step")
    assert decode_page_request('{"kind":"lanes"}') == LanesRequest()
    assert decode_page_request('{"kind":"stacks"}') == PageStacksRequest()
    deep = "[" * 100_000
    nonsense = ("", "{", "[]", '{"kind":"shutdown"}', '{"kind":"login","token":1}', b"\xff", deep)
    for text in (*nonsense, '{"kind":"view","metric":"__class__"}'):
        assert decode_page_request(text) is None, text[:40]


def test_ranks_that_wait_together_are_a_group() -> None:
    groups = wait_groups(hanging_snapshot(5).ranks)
    assert len(groups) == 1
    assert (groups[0].ranks, groups[0].count, groups[0].operation) == ("0, 2-4", 4, "all_reduce")
    assert [(a.name, a.activity) for a in groups[0].awaited] == [("worker 1", "stopped")]
    assert wait_groups(healthy_snapshot().ranks) == ()
    unknown = RankState(name="pid 7", activity=Activity.WAITING, operation="barrier", operation_s=9)
    assert wait_groups([unknown])[0].ranks == "pid 7"
    stopped = RankState(name="worker 1", activity=Activity.STOPPED, rank=1)
    assert [a.name for a in wait_groups([unknown, stopped])[0].troubled] == ["worker 1"]
    assert groups[0].troubled == ()  # it is known for whom they wait
    ended = msgspec.structs.replace(unknown, end="exit code 1")
    assert wait_groups([ended]) == ()
    assert rank_ranges([5, 0, 1, 2, 9]) == ["0-2", "5", "9"]


def test_the_timeline_is_bounded_and_follows_members() -> None:
    timeline = ActivityTimeline(max_moments=100)
    for moment in range(1000):
        names = ["a", "b"] if moment < 900 else ["b", "a", "c"]
        timeline.add(float(moment), names, "TW" if moment < 900 else "WTx")
    times, lanes = timeline.lanes(["a", "b", "c"])
    assert 30 <= len(times) <= 100 and times == sorted(times)
    assert set(lanes[0]) == {"T"} and set(lanes[1]) == {"W"}
    assert lanes[2].strip() == "x" * lanes[2].count("x") and lanes[2].startswith(" ")
    assert not timeline.add(times[-1], names, "WTx")  # no time has passed
    large = ActivityTimeline(max_letters=1000)
    for moment in range(500):
        large.add(float(moment), [str(n) for n in range(50)], "T" * 50)
    assert len(large.lanes(["0"]).times) <= 20


def test_the_series_of_before_is_part_of_the_timeline() -> None:
    state = new_state()
    members = SeriesMembers(names=("worker 0", "worker 1", "worker 2"))
    activities = (members.activities.index("training"),) * 3
    state.add_series([members, SeriesPoint(taken_at="", elapsed_s=1.0, activity=activities)])
    state.add_series([SeriesPoint(taken_at="", elapsed_s=2.0, activity=(1,))])  # torn: left out
    state.apply(SnapshotMessage(snapshot=hanging_snapshot()))
    lanes = json.loads(state.lanes(0, 2))
    assert lanes["lanes"] == ["Tw", "TX"] and lanes["times"] == [1.0, 85.0]


def test_a_page_gets_the_rows_and_numbers_that_it_shows() -> None:
    state = new_state()
    assert state.picture(View()) is None
    changed = state.apply(SnapshotMessage(snapshot=hanging_snapshot(4)))
    assert changed == ("members", "picture", "findings", "pages")
    assert state.apply(SnapshotMessage(snapshot=hanging_snapshot(4))) == ("picture",)
    picture = json.loads(state.picture(View(metric="step", limit=2, selected=1)) or b"")
    assert picture["letters"] == "wXww" and picture["values"] == [400] * 4
    assert picture["awaited"] == [[1, 3]] and not picture["is_well"]
    assert len(picture["rows"]) == 2 and picture["rows"][0][0] == "1"  # the most urgent first
    assert picture["selected"]["name"] == "worker 1"
    view = View(filter="nonsense", order="nonsense", search="worker 3", limit=10**9, selected=99)
    picture = json.loads(state.picture(view) or b"")
    assert picture["shown"] == 1 and "selected" not in picture
    assert json.loads(state.messages["pages"])["pages"] == {"HANG001": "page of HANG001"}


def test_in_a_job_that_trains_nobody_is_marked_as_awaited() -> None:
    """Of ranks that train, the fastest are always ahead of the others by a call."""
    snapshot = healthy_snapshot(3)
    ranks = tuple(msgspec.structs.replace(r, awaited_by=1) for r in snapshot.ranks)
    state = new_state()
    state.apply(SnapshotMessage(snapshot=msgspec.structs.replace(snapshot, ranks=ranks)))
    assert json.loads(state.picture(View()) or b"")["awaited"] == []


def test_control_characters_and_bytes_do_not_reach_the_page() -> None:
    nasty = "a\x1b[31m\u202eb\x00\udcff"
    finding = stopped_finding(summary=nasty, evidence=(Evidence(nasty, nasty),), fix=f"{nasty}\nb")
    state = new_state()
    snapshot = hanging_snapshot(3, finding, command=("python", nasty), host=nasty)
    state.apply(SnapshotMessage(snapshot=snapshot))
    state.apply(stacks(1))
    sent = [*state.messages.values(), state.picture(View()) or b""]
    for message in sent:
        assert message.decode().isprintable()
    fix = json.loads(state.messages["findings"])["findings"][0]["fix"]
    assert fix == "a\\x1b[31m\\u202eb\\x00\\udcff\nb"


@pytest.mark.parametrize("ranks", [100_000])
def test_a_page_of_a_large_job_stays_small(ranks: int) -> None:
    one = healthy_snapshot(1).ranks[0]
    many = tuple(
        msgspec.structs.replace(one, name=f"worker {n}", rank=n, host=f"h{n // 8}")
        for n in range(ranks)
    )
    state = new_state()
    snapshot = msgspec.structs.replace(healthy_snapshot(1), ranks=many)
    state.apply(SnapshotMessage(snapshot=snapshot))
    assert len(state.picture(View()) or b"") < 200_000
    assert len(state.picture(View(metric="step")) or b"") < 1_000_000
    assert len(state.lanes(99_990, 40)) < 2_000
