"""What is advised for ends of which the cause shows in what is known of them."""

from __future__ import annotations

import signal
from typing import Any

import msgspec
import pytest

from allaboard.facts import Claim, JobView, Member, Phase
from allaboard.facts.samples import (
    arrived_member,
    ended_member,
    gathering_job,
    member_with_calls,
    sample_job,
    sample_signature,
    sample_stack,
    waiting_member,
)
from allaboard.rules.exit001_killed import RULE as KILLED
from allaboard.rules.exit003_bad_exit_code import RULE as CODE
from allaboard.rules.exit005_lost_peer import RULE as LOST
from allaboard.rules.join003_died_before_init import RULE as DIED

_CRASHED = "Fatal Python error: Segmentation fault"
_TIMEOUT = "[unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete"
_MONITORED = f"Rank 1 failed to pass monitoredBarrier in 8000 ms\n Original exception: {_TIMEOUT}"


def only(view: JobView, rule: object = CODE) -> Claim:
    (claim,) = rule.check(view)  # type: ignore[attr-defined]
    assert isinstance(claim, Claim)
    return claim


def left(last: str, probed: bool = True) -> Member:
    one = ended_member(1, code=1, member={"probed": probed})
    assert one.exit is not None
    return msgspec.structs.replace(one, exit=msgspec.structs.replace(one.exit, last_line=last))


@pytest.mark.parametrize(
    ("last", "advice"),
    [
        (
            "ModuleNotFoundError: No module named 'torch'",
            "fix the error at the end of logs/worker-1.log;",
        ),
        ("[rank1]: torch.OutOfMemoryError: CUDA", "fix the error at the end of logs/worker-1.log;"),
        ("AssertionError", "fix the error at the end of logs/worker-1.log;"),
        ("no Error: all is well", "look for sys.exit or os._exit;"),
        ("", "look for sys.exit or os._exit;"),
    ],
)
def test_a_traceback_that_was_printed_is_what_is_to_be_mended(last: str, advice: str) -> None:
    assert only(sample_job(waiting_member(0), left(last))).fix.startswith(advice)


def test_without_a_probe_nothing_is_said_of_exceptions() -> None:
    said = only(sample_job(waiting_member(0), left("", probed=False))).evidence[0].observed
    assert said == "exit code 1, seen from outside only, without a probe"
    assert (
        only(sample_job(waiting_member(0), left("")))
        .evidence[0]
        .observed.endswith("no exception was seen")
    )


def test_a_timer_is_the_programs_own() -> None:
    fix = only(sample_job(waiting_member(0), ended_member(1, signal=signal.SIGALRM)), KILLED).fix
    assert "signal.alarm" in fix and "out-of-memory" not in fix
    assert (
        "out-of-memory"
        in only(sample_job(waiting_member(0), ended_member(1, signal=9)), KILLED).fix
    )


@pytest.mark.parametrize(
    ("message", "whose"), [(_MONITORED, "monitored_barrier"), (_TIMEOUT, "init_process_group")]
)
def test_the_timeout_that_ran_out_is_the_one_to_change(message: str, whose: str) -> None:
    five = {"groups": member_with_calls(0, *(sample_signature(),) * 5).groups}
    four = {
        "groups": member_with_calls(0, *(sample_signature(),) * 4).groups,
        "stack": sample_stack(),
    }
    gave_up = [ended_member(r, raised=("RuntimeError", message), member=five) for r in (0, 2)]
    late = ended_member(1, ended_at=97.0, signal=15, ours=True, member=four)
    assert only(sample_job(gave_up[0], late, gave_up[1]), LOST).fix.endswith(
        f"give {whose} a longer timeout="
    )


@pytest.mark.parametrize(
    ("how", "advice"),
    [
        ({"signal": signal.SIGUSR1}, "signal.signal(signal.SIGUSR1, save)"),
        ({"signal": signal.SIGKILL}, "on its host: dmesg"),
        ({"signal": signal.SIGKILL, "oom": True}, "read its output"),
        (
            {"signal": signal.SIGSEGV, "last_line": f"{_CRASHED}, a.py:3 in f"},
            "look at what a.py:3",
        ),
        ({"signal": signal.SIGSEGV, "last_line": "step 1"}, "read its output"),
        ({"code": 1}, "read its output"),
    ],
)
def test_a_signal_that_ends_a_member_before_init_has_advice_of_its_own(
    how: dict[str, Any], advice: str
) -> None:
    early = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
    view = gathering_job(arrived_member(0), ended_member(1, member=early, **how), arrived_member(2))
    assert only(view, DIED).fix.startswith(advice)
