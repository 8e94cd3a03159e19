"""A traceback whose last line is missing is still one; a whole one, and a dump of a stack, are not cut."""

from __future__ import annotations

import pytest

from allaboard.formats.dumps.cut_tracebacks import cut_traceback

HEAD = "Traceback (most recent call last):"
MAIN = ['  File "/work/train.py", line 9, in <module>', "    main()"]
STEP = ['  File "/work/train.py", line 5, in main', "    loss.backward()"]
LIBRARY = ['  File "/v/site-packages/torch/_tensor.py", line 1, in backward']


@pytest.mark.parametrize(
    "rest", [[], LIBRARY, ['  File "/v/site-packages/torch/_te'], ["    loss.ba"], ["", "```"]]
)
def test_the_innermost_line_of_the_user_is_named(rest: list[str]) -> None:
    found = cut_traceback(["step 3", HEAD, *MAIN, *STEP, *rest])
    assert found is not None and (found.line, found.frame.line, found.spawned) == (1, 5, -1)
    assert not found.message


def test_a_spawned_process_is_named() -> None:
    above = [
        "torch.multiprocessing.spawn.ProcessRaisedException: ",
        "",
        "-- Process 3 terminated with",
    ]
    found = cut_traceback([*above[:2], f"{above[2]} the following error:", HEAD, *MAIN, *STEP])
    assert found is not None and found.spawned == 3


def test_frames_below_their_message_belong_to_it() -> None:
    message = "Error(s) in loading state_dict for Linear:"
    raised = [STEP[0], "    raise RuntimeError("]
    found = cut_traceback([message, "\tsize mismatch for weight", *raised, *MAIN])
    assert found is not None and found.message == f"{message} size mismatch for weight"
    assert found.frame.line == 5


def test_frames_from_the_outermost_on_have_lost_their_head_too() -> None:
    found = cut_traceback(["Error executing job with overrides: []", *MAIN, *STEP])
    assert found is not None and not found.message and found.frame.line == 5


@pytest.mark.parametrize(
    "lines",
    [
        [HEAD, *MAIN, *STEP, "ValueError: bad"],
        [HEAD, *MAIN, *STEP, "KeyboardInterrupt"],
        [HEAD, *MAIN, *STEP, "acme.errors.Broken: the ring is open"],
        [HEAD, *MAIN, *STEP, "step 4 loss 1.0", "step 5 loss 1.0", "step 6 loss 1.0", "step 7"],
        ["created here:", *MAIN, *STEP],
        [HEAD, *MAIN],
    ],
)
def test_what_is_whole_or_no_traceback_is_left(lines: list[str]) -> None:
    assert cut_traceback(lines) is None


def test_the_exception_of_which_a_cut_one_came_is_kept() -> None:
    chain = "The above exception was the direct cause of the following exception:"
    found = cut_traceback(["OSError: [Errno 113] No route", "", chain, "", HEAD, *MAIN, *STEP])
    assert found is not None and found.cause == "OSError: [Errno 113] No route"
    unrelated = cut_traceback(["OSError: [Errno 113] No route", "", HEAD, *MAIN, *STEP])
    assert unrelated is not None and not unrelated.cause
