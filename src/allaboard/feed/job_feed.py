"""Publishes what the agent knows as the feed of the run, and writes the run's time series.

The job never waits for it: every error of the feed ends the feed, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from allaboard import __version__
from allaboard.facts import Address, Finding, JobView, Outcome, RoundReport, Snapshot, TaskReturn
from allaboard.feed.build_snapshot import RunFacts, build_snapshot, point_of
from allaboard.feed.course import CourseRecorder
from allaboard.feed.events_file import EventsFile
from allaboard.feed.feed_secret import SECRET_NAME, make_feed_secret
from allaboard.feed.feed_settings import Clock, FeedSettings, Speaker, StackSource
from allaboard.feed.messages import (
    Course,
    FindingMessage,
    Hello,
    Message,
    Note,
    SnapshotMessage,
    StacksRequest,
    encode_line,
)
from allaboard.feed.publisher import FeedPublisher, refused_stacks
from allaboard.feed.series import SeriesRecorder
from allaboard.feed.stack_collection import StackCollection
from allaboard.formats.secret_hints import redact
from allaboard.protocol.events import StackSampled
from allaboard.protocol.job_state_port import JobStatusPort

SNAPSHOT_INTERVAL_S = 0.9
"""Seconds between two snapshots: a little less than between two ticks of the agent."""
MAX_CPU_SHARE = 0.05
"""Share of a core that snapshots may cost: those of thousands of ranks come further apart."""
MAX_KEPT_MESSAGES = 200
"""Findings, and notes, that a new client is sent."""


class JobFeed:
    """The feed of one run.

    ``describe_wait`` returns whom or what the job waits for; ``record`` writes a line to the journal alone;
    ``cpu_time`` returns the seconds of CPU that this thread has used.
    """

    def __init__(
        self,
        settings: FeedSettings,
        speaker: Speaker,
        clock: Clock,
        describe_wait: Callable[[JobView], str],
        record: Callable[[str], None],
        cpu_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._settings, self._speaker, self._clock = settings, speaker, clock
        self._describe_wait, self._record, self._cpu_time = describe_wait, record, cpu_time
        self._facts = RunFacts(
            job=settings.job,
            command=settings.command,
            allaboard=__version__,
            host=settings.host,
            run_dir=str(settings.folder),
            started=clock.utc(settings.started_at),
        )
        self._hello = Hello(allaboard=__version__, job=settings.job, host=settings.host)
        self._publisher = FeedPublisher(
            self._hello, self._history, self._on_join, self._on_stacks, self._clock.monotonic
        )
        self._series = SeriesRecorder(settings.folder)
        self._course = CourseRecorder()
        self._events_file: EventsFile | None = None
        self._findings: dict[str, Finding] = {}
        self._notes: deque[Note] = deque(maxlen=MAX_KEPT_MESSAGES)
        self._last_snapshot: Snapshot | None = None
        self._recent_until = 0.0
        self._next_at = 0.0
        self._collections: list[tuple[StackCollection, Callable[[Message], None]]] = []
        self._wake: Callable[[], None] = lambda: None
        self._port_task: asyncio.Task[None] | None = None
        self._has_failed = False

    async def start(self) -> None:
        """Open the socket in the run folder and the file of ``--events``."""
        try:
            await self._publisher.open_socket(self._settings.folder)
        except OSError as error:
            folder = self._settings.folder
            self._record(f"the feed has no socket in {folder}: {error.strerror or error}")
            if error.errno == errno.EADDRINUSE:
                # The file is the other agent's, which thins it.
                self._series.write_error = "another agent writes the series of this folder"
        if self._settings.events_path:
            try:
                self._events_file = EventsFile.open(self._settings.events_path)
                self._events_file.add_line(encode_line(self._hello), False)
            except OSError as error:
                self._speak_of_events(f"{error.strerror}; the run goes on without it")

    def set_wake(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` from now on when a client wants something."""
        self._wake = wake

    def set_history(self, rounds: Sequence[RoundReport], returns: Sequence[TaskReturn]) -> None:
        """Note the rounds that are over, and the tasks that came back alone."""
        self._facts = msgspec.structs.replace(
            self._facts, rounds=tuple(rounds), returns=tuple(returns)
        )

    def update(self, now: float, status: JobStatusPort, stacks: StackSource) -> tuple[int, ...]:
        """Publish what is new; return the processes whose stacks a client waits for. Never raises."""
        if self._has_failed:
            return ()
        try:
            return self._update(now, status, stacks)
        except Exception:
            self._has_failed = True
            self._record(traceback.format_exc())
            return ()

    def _update(self, now: float, status: JobStatusPort, stacks: StackSource) -> tuple[int, ...]:
        samples = stacks.take_stack_samples()
        self._report_events_error()
        self._open_port_if_due(status)
        elapsed_s = now - self._settings.started_at
        is_awaited = self._publisher.has_clients or self._events_file is not None
        ranks = len(self._last_snapshot.ranks) if self._last_snapshot is not None else 0
        is_published = is_awaited and now >= self._next_at
        is_recorded = self._series.is_due(elapsed_s, ranks)
        if is_published or is_recorded:
            self._next_at = now + SNAPSHOT_INTERVAL_S
            begun_at = self._cpu_time()
            snapshot = self._take_snapshot(now, status)
            if is_recorded:
                self._series.add(snapshot)
            if is_awaited:
                self._send(SnapshotMessage(snapshot=snapshot))
            cost_s = self._cpu_time() - begun_at
            self._next_at = now + max(SNAPSHOT_INTERVAL_S, cost_s / MAX_CPU_SHARE)
        return self._collect_stacks(now, status.recent_view(now), samples)

    def recent_snapshot(self, now: float, status: JobStatusPort) -> Snapshot | None:
        """Return a snapshot that is at most `SNAPSHOT_INTERVAL_S` old, or None. Never raises."""
        if self._has_failed:
            return None
        if self._last_snapshot is None or now >= self._recent_until:
            try:
                self._take_snapshot(now, status)
            except Exception:
                self._has_failed = True
                self._record(traceback.format_exc())
                return None
        return self._last_snapshot

    def _take_snapshot(
        self, now: float, status: JobStatusPort, outcome: tuple[Outcome, str] | None = None
    ) -> Snapshot:
        begun_at = self._clock.monotonic()
        view = status.recent_view(now)
        ending = status.ending
        leads = not status.leader_decides
        facts = msgspec.structs.replace(
            self._facts,
            leads=leads,
            elapsed_s=now - self._settings.started_at,
            outcome=outcome[0] if outcome is not None else None,
            reason=redact(
                outcome[1] if outcome is not None else ending.reason if ending is not None else ""
            ),
            status=self._describe_wait(view) if leads else "",
        )
        script_findings = self._speaker.script_findings
        snapshot = build_snapshot(
            view,
            facts,
            tuple(map(redact, (*status.findings, *script_findings))),
            self._clock.utc(view.now),
        )
        self._course.add(point_of(snapshot))
        self._last_snapshot = snapshot
        cost_s = self._clock.monotonic() - begun_at
        self._recent_until = now + max(SNAPSHOT_INTERVAL_S, cost_s / MAX_CPU_SHARE)
        return snapshot

    def _collect_stacks(
        self, now: float, view: JobView, samples: list[StackSampled]
    ) -> tuple[int, ...]:
        """Hand the samples to those who asked, answer them when all have come, and return the processes that
        are to be sampled now."""
        keys: set[int] = set()
        waiting = []
        for collection, answer in self._collections:
            for sample in samples:
                collection.add(sample.pid, sample.frames, sample.sampled_at)
            if collection.is_done(now, view):
                answer(collection.answer(view, self._clock.utc(now)))
            else:
                waiting.append((collection, answer))
                keys.update(collection.keys_to_sample(now, view))
        self._collections = waiting
        return tuple(sorted(keys))

    @property
    def awaits_stacks(self) -> bool:
        """True while a client waits for stacks, so that the loop looks more often."""
        return bool(self._collections)

    def publish_note(self, utc_time: str, text: str) -> None:
        """Publish a note of allaboard's."""
        note = Note(noted_at=utc_time, text=text)
        self._notes.append(note)
        self._send(note)

    def publish_finding(self, finding: Finding) -> None:
        """Publish a finding that was made or resolved."""
        self._findings[f"{finding.rule} {finding.who!r}"] = finding
        if len(self._findings) > MAX_KEPT_MESSAGES:
            del self._findings[next(iter(self._findings))]
        self._send(FindingMessage(finding=finding))
        self._next_at = 0.0  # the next snapshot at once: faces show the finding with who and where

    async def finish(self, now: float, status: JobStatusPort, outcome: tuple[Outcome, str]) -> None:
        """Publish the last snapshot, with the outcome, and close everything."""
        self._wake = lambda: None
        if self._port_task is not None:
            self._port_task.cancel()
        if not self._has_failed:
            with contextlib.suppress(Exception):
                snapshot = self._take_snapshot(now, status, outcome)
                self._series.add(snapshot)
                self._send(SnapshotMessage(snapshot=snapshot))
        await self._publisher.close()
        with contextlib.suppress(OSError):
            (self._settings.folder / SECRET_NAME).unlink(missing_ok=True)
        if self._events_file is not None:
            self._events_file.close()
            self._report_events_error()

    def _report_events_error(self) -> None:
        """Say once that the file of ``--events`` takes no more, and leave it."""
        if self._events_file is not None and self._events_file.write_error:
            self._speak_of_events(f"{self._events_file.write_error}; what follows is not in it")
            self._events_file.close()
            self._events_file = None

    def _speak_of_events(self, problem: str) -> None:
        self._speaker.write_line(f"--events {self._settings.events_path}: {problem}")

    def _send(self, message: Message) -> None:
        if self._has_failed or not (self._publisher.has_clients or self._events_file is not None):
            return
        is_snapshot = isinstance(message, SnapshotMessage)
        line = encode_line(message)
        self._publisher.publish_line(line, is_snapshot)
        if self._events_file is not None:
            self._events_file.add_line(line, is_snapshot)

    def _history(self) -> list[Message]:
        messages: list[Message] = [Course(points=self._course.points)]
        messages += [FindingMessage(finding=f) for f in self._findings.values()]
        messages += self._notes
        if self._last_snapshot is not None:
            messages.append(SnapshotMessage(snapshot=self._last_snapshot))
        return messages

    def _on_join(self) -> None:
        self._next_at = 0.0
        self._wake()

    def _on_stacks(self, request: StacksRequest, answer: Callable[[Message], None]) -> None:
        if self._settings.only_observes:
            reason = "no stacks are sampled under --observe; for one process: py-spy dump --pid PID"
            answer(refused_stacks(request, reason))
            return
        self._collections.append((StackCollection(request.id, self._clock.monotonic()), answer))
        self._wake()

    def _open_port_if_due(self, status: JobStatusPort) -> None:
        """Open the port of ``--feed`` once this host leads: all hosts of the job have the same option."""
        if self._port_task is not None or not self._settings.address or status.leader_decides:
            return
        if self._settings.is_joined and status.opened_at is None:
            return
        self._port_task = asyncio.get_running_loop().create_task(self._open_port())

    async def _open_port(self) -> None:
        settings = self._settings
        address = Address.from_endpoint(settings.address)
        hint = ""
        try:
            secret = settings.secret
            context = settings.tls.make_context(server=True) if settings.tls is not None else None
            if not secret and context is None:
                path = self._settings.folder / SECRET_NAME
                secret = make_feed_secret(path)
                hint = f" --secret-file {path}"
            host, port = await self._publisher.open_port(address, secret, context)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", "") or str(error)
            self._speaker.write_line(
                f"the feed is not published at {settings.address}: {reason}; the run goes on. "
                f"On this host, watch it with: allaboard watch {self._settings.folder}"
            )
            return
        shown_host = f"[{host}]" if ":" in host else host
        self._speaker.write_line(
            f"the feed is published; watch it with: allaboard watch {shown_host}:{port}{hint}"
        )
