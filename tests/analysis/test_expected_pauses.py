"""Who is told of as pausing while the others wait for it."""

from __future__ import annotations

import msgspec

from allaboard.analysis.stalls.expected_pauses import pause_line
from allaboard.facts import Frame, Op
from allaboard.facts.samples import USER, sample_member, sample_stack, stalled_job, waiting_member

_RECEIVES = Frame("/usr/lib/python3.11/socket.py", 720, "readinto")
_HTTP = Frame("/usr/lib/python3.11/http/client.py", 292, "_read_status")
_WAIT = Frame("/usr/lib/python3.11/threading.py", 327, "wait")


def test_who_asks_a_service_is_told_of() -> None:
    view = stalled_job(
        waiting_member(0), sample_member(1, stack=sample_stack(_RECEIVES, _HTTP, USER))
    )
    said = "waiting: rank 1 waits for the answer of another process (train.py:41 in train)"
    assert pause_line(view) == said


def test_the_address_that_does_not_answer_is_named() -> None:
    stack = msgspec.structs.replace(
        sample_stack(_RECEIVES, _HTTP, USER), awaited_end="an answer from 10.0.0.5:443"
    )
    view = stalled_job(waiting_member(0), sample_member(1, stack=stack))
    assert pause_line(view) == (
        "waiting: rank 1 waits for an answer from 10.0.0.5:443 (train.py:41 in train)"
    )


def test_a_collective_that_a_framework_calls_in_threads_is_no_question_to_a_service() -> None:
    in_threads = msgspec.structs.replace(sample_stack(_WAIT, USER), asks=True)
    agrees = sample_member(0, op=Op("agreeing on a batch", 41, 90.0), stack=in_threads)
    view = stalled_job(agrees, sample_member(1, stack=sample_stack(_RECEIVES, _HTTP, USER)))
    assert "rank 1 waits for the answer" in pause_line(view)
    asleep = Frame("/home/u/train.py", 40, "<module>", "time.sleep(9)")
    assert pause_line(stalled_job(agrees, sample_member(1, stack=sample_stack(asleep)))) == ""


def test_who_evaluates_is_told_of_unless_it_waits_for_the_others() -> None:
    evaluates = msgspec.structs.replace(sample_member(0).spent, now="evaluation")
    computes = sample_member(0, stack=sample_stack(USER), spent=evaluates)
    assert pause_line(stalled_job(computes, waiting_member(1))) == (
        "waiting: rank 0 evaluates (train.py:41 in train)"
    )
    waits = msgspec.structs.replace(waiting_member(0), spent=evaluates)
    assert pause_line(stalled_job(waits, waiting_member(1))) == ""


def test_a_generator_that_asks_a_service_in_a_thread_of_the_framework_is_told_of() -> None:
    step = Frame("/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
    asks = Frame("/home/u/train.py", 12, "generate", "urlopen(url).read()")
    stack = msgspec.structs.replace(
        sample_stack(step, USER), fed_by=(_RECEIVES, _HTTP, asks), flows=False
    )
    fed = sample_member(1, op=Op("tf.function step", 41, 90.0), stack=stack)
    assert pause_line(stalled_job(waiting_member(0), fed)) == (
        "waiting: rank 1 waits for the answer of another process (train.py:12 in generate)"
    )
    delivers = msgspec.structs.replace(fed, stack=msgspec.structs.replace(stack, flows=True))
    assert pause_line(stalled_job(waiting_member(0), delivers)) == ""
