"""Messages, heartbeat and command, with real receivers: mail, HTTP, and those that refuse, hang or talk
nonsense."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from test_incidents import changed, hanging, moving

from allaboard.faces.notify import heartbeat
from allaboard.faces.notify.finding_command import CommandInput, FindingCommand
from allaboard.faces.notify.heartbeat import call_url, send_heartbeats
from allaboard.faces.notify.incidents import SETTLE_S
from allaboard.faces.notify.notice_text import MessageText
from allaboard.faces.notify.notify_settings import NotifySettings
from allaboard.faces.notify.run_notifier import RunNotifier
from allaboard.faces.notify.send_messages import MessageSender
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.faces.watch.run_source import SourceChanged
from allaboard.feed.messages import FindingMessage, Message, SnapshotMessage
from reported import answering, receiving, refusing
from watched import stopped_finding

# apprise imports a module of Python's own that is deprecated; the processes of users print nothing of it.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
TEXT = MessageText("the title", "the body")
SECRET = "hunter2secret"


def send(url: str, timeout_s: float = 20.0) -> tuple[bool, list[str]]:
    notes: list[str] = []

    async def run() -> bool:
        sender = MessageSender(1, url, ProblemNotes(notes.append), timeout_s)
        assert await sender.check()
        return await sender.send(TEXT, (0.01,))

    return asyncio.run(run()), notes


needs_apprise = pytest.mark.usefixtures("apprise")


@pytest.fixture
def apprise() -> None:
    pytest.importorskip("apprise", reason="apprise is not installed")


@needs_apprise
def test_a_web_hook_gets_the_message() -> None:
    with receiving() as (address, came):
        assert send(f"json://user:{SECRET}@{address}/hook") == (True, [])
    assert [(m["title"], m["message"]) for m in came] == [("the title", "the body")]


@needs_apprise
def test_mail_arrives() -> None:
    controller = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd is not installed")
    mails = []

    class Mailbox:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            mails.append((envelope.rcpt_tos, envelope.content.decode()))
            return "250 OK"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = controller.Controller(Mailbox(), hostname="127.0.0.1", port=port)
    server.start()
    try:
        url = f"mailto://127.0.0.1:{port}?from=job@example.org&to=me@example.org&mode=insecure"
        assert send(url) == (True, [])
    finally:
        server.stop()
    ((recipients, mail),) = mails
    assert recipients == ["me@example.org"] and "Subject: the title" in mail


@needs_apprise
@pytest.mark.parametrize("kind", ["refuses", "error", "garbage", "hangs"])
def test_a_broken_receiver_is_said_once_without_its_secret(kind: str) -> None:
    places: dict[str, Any] = {
        "refuses": refusing(), "garbage": answering(b"\xff\x00 garbage\r\n\r\n"), "hangs": answering(None),
        "error": receiving(500),
    }  # fmt: skip
    with places[kind] as place:
        address = place[0] if isinstance(place, tuple) else place
        was_sent, notes = send(
            f"json://user:{SECRET}@{address}/{SECRET}", 1.0 if kind == "hangs" else 20.0
        )
    assert not was_sent
    (note,) = notes
    assert note.startswith("notification 1 (json://…) was not sent: ") and SECRET not in note


@needs_apprise
def test_a_url_that_is_none_is_said_without_it() -> None:
    notes: list[str] = []

    async def run() -> bool:
        return await MessageSender(
            2, f"no-such://{SECRET}", ProblemNotes(notes.append), 9.0
        ).check()

    assert not asyncio.run(run())
    assert (
        notes[0].startswith("notification 2 (no-such://…) cannot be sent")
        and SECRET not in notes[0]
    )


def test_the_heartbeat_calls_and_says_once_that_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    async def beat(url: str, enough: Callable[[], object]) -> list[str]:
        notes: list[str] = []
        task = asyncio.create_task(send_heartbeats(url, ProblemNotes(notes.append), 0.02))
        async with asyncio.timeout(30):
            while not enough():
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return notes

    with receiving() as (address, came):
        assert asyncio.run(beat(f"http://{address}/{SECRET}", lambda: len(came) > 2)) == []
        assert came[0]["path"] == f"/{SECRET}"
    calls: list[float] = []
    real_call = heartbeat.call_url
    monkeypatch.setattr(heartbeat, "call_url", lambda url: (calls.append(1.0), real_call(url))[1])
    with refusing() as address:
        notes = asyncio.run(beat(f"http://{address}/{SECRET}", lambda: len(calls) > 3))
    assert notes == ["the heartbeat is not sent (--heartbeat-url): connection refused"]


def test_a_call_that_fails_says_why_without_the_url() -> None:
    with receiving(404) as (address, _):
        assert call_url(f"http://{address}/{SECRET}") == "the answer is 404"
    with receiving(302) as (address, came):
        assert call_url(f"http://{address}/{SECRET}") == "the answer is 302" and len(came) == 1
    with answering(b"garbage\r\n\r\n") as address:
        assert SECRET not in call_url(f"http://{address}/{SECRET}") != ""
    with answering(None) as address:
        begun_at = time.monotonic()
        assert call_url(f"http://{address}/{SECRET}", 0.3) == "no answer"
        assert time.monotonic() - begun_at < 20
    assert call_url(SECRET) == "it is no URL"


def run_command(command: str, folder: Path, timeout_s: float = 30.0, times: int = 1) -> list[str]:
    notes: list[str] = []

    async def run() -> None:
        runner = FindingCommand(command, folder, ProblemNotes(notes.append), timeout_s)
        task = asyncio.create_task(runner.run())
        for _ in range(times):
            runner.add(CommandInput(job="j", run_dir=str(folder), finding=stopped_finding()))
        async with asyncio.timeout(60):
            await runner.wait_until_idle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    return notes


def test_the_command_gets_each_finding_as_json(tmp_path: Path) -> None:
    assert run_command(f"cat >> {tmp_path}/out; echo noise", tmp_path, times=2) == []
    lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [line["finding"]["rule"] for line in lines] == ["HANG001", "HANG001"]
    assert lines[0]["job"] == "j" and (tmp_path / "on-finding.log").read_text() == "noise\nnoise\n"


def test_a_command_that_fails_hangs_or_reads_nothing_is_said_once(tmp_path: Path) -> None:
    (note,) = run_command("exit 3", tmp_path, times=3)
    assert note == (
        "the command of --on-finding failed for HANG001: exit code 3; what it wrote is in on-finding.log"
    )
    (note,) = run_command(f"sleep 77 & sleep 78; touch {tmp_path}/late", tmp_path, 0.3)
    assert "took longer than 0.3 s and was killed" in note
    assert not (tmp_path / "late").exists()
    assert run_command("true", tmp_path) == []


class Course:
    """Plays a run: messages, or seconds to wait."""

    def __init__(self, *parts: Message | float) -> None:
        self.parts = parts
        self.is_closed = False

    async def messages(self) -> AsyncIterator[Message | SourceChanged]:
        for part in self.parts:
            if isinstance(part, float):
                self.now += part
                await asyncio.sleep(0)
            else:
                yield part

    def close(self) -> None:
        self.is_closed = True

    now = 0.0


def follow(course: Course, settings: NotifySettings) -> list[str]:
    notes: list[str] = []

    async def run() -> None:
        await RunNotifier(course, settings, ProblemNotes(notes.append), lambda: course.now).run()

    asyncio.run(run())
    return notes


def fault(run_dir: str, **run: Any) -> list[Message | float]:
    snapshot = changed(hanging(stopped_finding()), run_dir=run_dir, **run)
    ended = changed(snapshot, outcome="hang", reason="no progress")
    return [
        FindingMessage(finding=stopped_finding()), SnapshotMessage(snapshot=snapshot), SETTLE_S,
        SnapshotMessage(snapshot=snapshot), SnapshotMessage(snapshot=ended),
    ]  # fmt: skip


@needs_apprise
def test_a_fault_and_the_end_are_told_before_the_face_ends(tmp_path: Path) -> None:
    with receiving() as (address, came):
        settings = NotifySettings(run_dir="/r", urls=(f"json://{address}", f"json://{address}/2"))
        assert follow(Course(*fault("/r")), settings) == []
    assert sorted(m["title"].partition(": ")[2] for m in came) == [
        "j has ended (hang): no progress", "j has ended (hang): no progress",
        "j: worker 1 is stopped (SIGSTOP or Ctrl-Z)", "j: worker 1 is stopped (SIGSTOP or Ctrl-Z)",
    ]  # fmt: skip


@needs_apprise
@pytest.mark.parametrize(
    ("course", "messages"),
    [
        (fault("/r", leads=False), 0),  # a follower
        (fault("/leader"), 0),  # the leader's feed, in a shared folder
        (fault("/r"), 0),  # it has met no leader yet, and may be one of many
        (
            [SnapshotMessage(snapshot=changed(moving(5), leads=False, run_dir="/r")), *fault("/r")],
            2,
        ),
    ],
)
def test_of_several_hosts_the_one_that_leads_tells(
    course: list[Message | float], messages: int
) -> None:
    with receiving() as (address, came):
        settings = NotifySettings(
            run_dir="/r", urls=(f"json://{address}",), only_if_taken_over=True
        )
        follow(Course(*course), settings)
    assert len(came) == messages
