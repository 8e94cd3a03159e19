"""The error before the end of a log that says why a process aborted, exited, or lost its peers."""

from __future__ import annotations

import pytest

from allaboard.analysis.log_ends.preceding_errors import likely_reason, preceding_errors
from allaboard.facts import LoggedReason, Place, Speaker


def reason_before_end(*lines: str) -> str:
    """Return the message of the line that is taken for the reason of an end in the line after these."""
    reasons = [
        LoggedReason(
            says=error.message,
            speaker=Speaker(-1, lines[error.number], Place(file="log", line=error.number + 1)),
            fix="",
            is_consequence=error.is_consequence,
            is_stated=error.is_stated,
        )
        for error in preceding_errors(lines)
    ]
    reason = likely_reason(reasons, len(lines) + 1)
    return reason.says if reason is not None else ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "h:1:2 [0] wrap.cc:27 NCCL WARN Call to acme_reg failed with error 12",
            "Call to acme_reg",
        ),
        ("2025:06:01-10:01:00:( 44) |ACC_ERROR| ring.cpp:8 open: no provider", "ring.cpp:8 open"),
        ("[h:1] pml.c:419  Error: endpoint 7 cannot be made", "endpoint 7 cannot be made"),
        (
            "[proxy:0@h] topo_bind (tools/topo.c:89): no topology library here",
            "no topology library",
        ),
        ("kernel.cu:250: thread [3,0,0] Assertion `t < n` failed.", "Assertion `t < n`"),
        (
            " 33%|███▎ | 667/2001 [4:51<8:54, 26.2s/it]Access fault by node-3",
            "Access fault by node-3",
        ),
    ],
)
def test_the_form_of_an_error_is_heard_whatever_its_words(line: str, message: str) -> None:
    assert message in reason_before_end("starting", line)


def test_of_several_errors_the_first_is_the_reason() -> None:
    said = reason_before_end(
        "ERROR ring: the buffer of 4 GiB was rejected",
        "ERROR ring: setup of stage 1 failed",
        "ERROR main: stage 1 has failed",
    )
    assert said == "ring: the buffer of 4 GiB was rejected"


def test_words_that_pass_a_failure_on_come_after_all_others() -> None:
    said = reason_before_end(
        "W0601 10:01:00.1 1 net.cc:12] Connection closed by peer 3",
        "W0601 10:01:00.2 1 mem.cc:90] pool of device 0: out of memory",
        "E0601 10:01:00.3 1 api.py:8] failed (exitcode: 1) local_rank: 0",
    )
    assert "out of memory" in said


def test_what_the_log_calls_the_reason_comes_first() -> None:
    said = reason_before_end(
        "AcmeError: a call of the library has failed", "Last error:", "card 7 is held by pid 12"
    )
    assert said == "card 7 is held by pid 12"


def test_a_text_between_rules_is_read_as_a_whole() -> None:
    rule = "-" * 40
    said = reason_before_end(
        rule,
        "A component was not found, or could not be",
        "opened. Other components may do.",
        "",
        "  Host:      h7",
        "  Component: pass",
        rule,
    )
    assert said.startswith("A component was not found, or could not be opened.")
    assert said.endswith("Host: h7; Component: pass")


@pytest.mark.parametrize(
    "lines",
    [
        ["ERROR upload of the metrics failed", "step 11 loss 1.1"],
        ["WARNING no plugin for this card was found, falling back to the default"],
        ["INFO nothing has failed so far, 0 errors"],
        ["ERROR the cache is locked"] + [f"a line of output {n}" for n in range(40)],
        ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    raise failed"],
    ],
)
def test_what_was_survived_or_is_far_away_is_no_reason(lines: list[str]) -> None:
    assert reason_before_end(*lines) == ""
