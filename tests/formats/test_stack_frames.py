"""Frames out of what faulthandler and py-spy print."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_faulthandler, parse_pyspy

DUMP = """Thread 0x00007f1b2c3d4700 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/home/u/a folder/train.py", line 12 in work

Current thread 0x00007f1b2d4e5740 [python] (most recent call first):
  File "/home/u/train \\"x\\".py", line ??? in <lambda>
  File "/home/u/train.py", line 41 in train
  File "/home/u/train.py", line 90 in <module>
"""
MAIN = 0x7F1B2D4E5740


def test_the_main_thread_is_chosen_by_its_id() -> None:
    frames = parse_faulthandler(DUMP, MAIN)
    assert [(f.function, f.line) for f in frames] == [
        ("<lambda>", 0),
        ("train", 41),
        ("<module>", 90),
    ]
    other = parse_faulthandler(DUMP, 0x7F1B2C3D4700)
    assert other[1] == Frame("/home/u/a folder/train.py", 12, "work")


def test_an_unknown_main_thread_is_the_oldest() -> None:
    assert parse_faulthandler(DUMP, 0) == parse_faulthandler(DUMP, MAIN)


@pytest.mark.parametrize("text", ["", "\0\0", "Thread 0x12", "Fatal error\n  File", DUMP[:150]])
def test_a_text_without_the_main_thread_is_empty(text: str) -> None:
    assert parse_faulthandler(text, MAIN) == ()


def test_a_thread_without_a_python_frame_is_empty() -> None:
    head = f"Thread {MAIN:#x} (most recent call first):\n"
    assert parse_faulthandler(head + "  <no Python frame>\n", MAIN) == ()


def test_a_real_dump_of_two_threads() -> None:
    code = (
        "import faulthandler, sys, threading\n"
        "started, end = threading.Event(), threading.Event()\n"
        "def other():\n    started.set(); end.wait()\n"
        "threading.Thread(target=other, name='feeder', daemon=True).start(); started.wait()\n"
        "print(threading.main_thread().ident, file=sys.stderr)\n"
        "def main():\n    faulthandler.dump_traceback_later(0.2, exit=True); sys.stdin.readline()\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stderr is not None
        ident, _, text = process.stderr.read().partition("\n")
    frames = parse_faulthandler(text, int(ident))
    assert Frame("<string>", 8, "main") in frames
    assert frames[-1] == Frame("<string>", 9, "<module>")
    assert not any(f.function == "other" for f in frames)


def spied(**changes: object) -> dict[str, object]:
    """A thread as `py-spy dump --json` prints it."""
    frames = [
        {
            "name": "wait",
            "filename": "/usr/lib/python3.11/threading.py",
            "module": None,
            "short_filename": "threading.py",
            "line": 327,
            "locals": None,
            "is_entry": True,
        },
        {
            "name": "<module>",
            "filename": "/home/u/train.py",
            "module": None,
            "short_filename": "train.py",
            "line": 9,
            "locals": None,
            "is_entry": False,
        },
    ]
    thread: dict[str, object] = {
        "pid": 700,
        "thread_id": 140000000000000,
        "thread_name": "Thread-1",
        "os_thread_id": 701,
        "active": False,
        "owns_gil": False,
        "frames": frames,
        "process_info": None,
    }
    return thread | changes


def test_the_main_thread_of_py_spy() -> None:
    other = spied(frames=[])
    by_id = spied(os_thread_id=700, thread_name=None)
    by_name = spied(os_thread_id=None, thread_name="MainThread")
    for main in (by_id, by_name):
        frames = parse_pyspy(json.dumps([other, main, other]).encode(), 700)
        assert frames == (
            Frame("/usr/lib/python3.11/threading.py", 327, "wait"),
            Frame("/home/u/train.py", 9, "<module>"),
        )
    assert len(parse_pyspy(json.dumps([other, spied()]).encode(), 700)) == 2, "else the last one"


@pytest.mark.parametrize(
    "text", [b"", b"Error: No such process", b"{}", b"[]", b'[{"frames": 1}]', b"[" * 100_000]
)
def test_what_py_spy_does_not_print_is_empty(text: bytes) -> None:
    assert parse_pyspy(text, 700) == ()
