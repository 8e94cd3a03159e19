"""Messages of TensorFlow: its coordination service, gRPC servers, collectives, TF1 sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from allaboard.analysis.log_ends.awaited_tasks import join_waits
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.tensorflow_messages import MESSAGES, STRAGGLERS, TASK
from allaboard.diagnosis.wordings.tensorflow_session_messages import (
    GAVE_UP,
    LOST,
    SESSION_WAITS,
    STORAGE,
    UNREACHED,
    WAITS,
)
from allaboard.facts import Exhibit, Heard, Testimony

_WAITING = re.compile(r"Waiting for (\d+)/(\d+) tasks to connect")
_RELAY = re.compile(
    r"remote target "
    + TASK
    + r"(?: while calling [\w./]+)?:\s*\n?:[^\n]{0,200}Error received from peer[^\n]{0,400}remote target"
)
"""Matches a task that passes on that it could not reach another one."""
_SESSION_RULE = "PS003"
"""The rule of a session that waits for tasks."""
MIN_TRAINED_LINES = 2
"""Lines of a training after the wait of a session that show that it began."""
MIN_CHECKS = 2
"""Checks without success in a row: the first one is made as soon as a worker begins."""
MIN_LOSSES = 2
"""Sessions in a row that ended before they trained."""
_TRAINED = re.compile(
    r"\bloss\b|global_step/sec|\bstep ?= ?\d|[Ss]aving checkpoints|\bexamples/sec|images/sec"
)
_WENT_ON = re.compile(r"Running local_init_op|" + _TRAINED.pattern)
"""Written once the chief has initialised the variables."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    relay = _RELAY.search(exhibit.text)
    messages = [m for m in MESSAGES if not _waited_and_trained(exhibit.text, m)]
    heard = (
        *_stragglers(exhibit),
        *_sessions(exhibit),
        *(_as_seen_from(h, relay) for h in find_known_messages(exhibit, messages)),
    )
    heard = join_waits(heard, _SESSION_RULE)
    return Testimony(heard=heard) if heard else None


def _waited_and_trained(text: str, message: KnownMessage) -> bool:
    """Return True if the message is that of a session which waits, and the text shows that it began."""
    if message.key != SESSION_WAITS or message.key not in text:
        return False
    trained = _TRAINED.finditer(text, text.rfind(message.key))
    return len(list(islice(trained, MIN_TRAINED_LINES))) == MIN_TRAINED_LINES


def _as_seen_from(heard: Heard, relay: re.Match[str] | None) -> Heard:
    """Return a message about a task that did not answer, with the task that asked it and passed that on."""
    if relay is None or not heard.says.endswith(" did not answer"):
        return heard
    return msgspec.structs.replace(heard, says=f"{heard.says} {relay['job']} {relay['task']}")


def _stragglers(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the tasks that the last count of the leader left.

    A healthy start counts down too.
    """
    text = exhibit.text
    counts = list(_WAITING.finditer(text))
    if not counts or counts[-1][1] == "0":
        return ()
    last_count_begin = text.rfind("\n", 0, counts[-1].start()) + 1
    remainder = msgspec.structs.replace(exhibit, data=text[last_count_begin:].encode(), cut=1)
    stragglers = find_known_messages(remainder, (STRAGGLERS,))
    after_last_count = text[last_count_begin:]
    return tuple(
        h
        for h in stragglers
        if not any(
            f"/job:{w.job}/replica:0/task:{w.index} has connected" in after_last_count
            for w in h.about
        )
    )


def _sessions(exhibit: Exhibit) -> Iterator[Heard]:
    """Yield what sessions of TensorFlow 1 wait for, or lose again and again, when the log ends."""
    text = exhibit.text
    gave_up = find_known_messages(exhibit, (GAVE_UP,))
    yield from gave_up
    if not gave_up and _repeats(text, WAITS.key, _WENT_ON) >= MIN_CHECKS:
        yield from find_known_messages(exhibit, (WAITS,))[-1:]
    yield from find_known_messages(exhibit, (STORAGE,))[:1]
    if _repeats(text, LOST.key, _TRAINED) >= MIN_LOSSES:
        yield from find_known_messages(exhibit, (LOST,))[-1:]
    if _repeats(text, UNREACHED[0].key, _WENT_ON) >= MIN_LOSSES:
        yield from find_known_messages(exhibit, UNREACHED)[-1:]


def _repeats(text: str, message: str, progress: re.Pattern[str]) -> int:
    """Return how often the message stands in the text since its last progress."""
    position, count = len(text), 0
    while (begin := text.rfind(message, 0, position)) >= 0:
        end_of_line = text.find("\n", begin)
        if end_of_line >= 0 and progress.search(text, end_of_line, position):
            break
        position, count = text.rfind("\n", 0, begin) + 1, count + 1
    return count


READER = LogReader(read=read_log)
