"""How a program ends stays its own: exit codes, signals, hooks; and its last words are kept."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from probed import Program

ENDS = {
    "falls off the end": "pass",
    "exit code": "import sys; sys.exit(7)",
    "exit with words": "import sys; sys.exit('no data')",
    "exception": "raise ValueError('x')",
    "os._exit": "import os; os._exit(5)",
    "abort": "import os; os.abort()",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "exception in a thread": "import threading; threading.Thread(target=lambda: 1 / 0).start()",
    "exception at exit": "import atexit; atexit.register(lambda: 1 / 0)",
}


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS.keys())
def test_it_ends_as_it_would_without_us(program: Program, body: str) -> None:
    script = program.folder / "plain.py"
    script.write_text(body)
    plain = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    ended = program.run(body)
    assert ended.code == plain.returncode
    assert ended.out == plain.stdout
    lines = [line.replace("plain.py", "script.py") for line in plain.stderr.splitlines()]
    if "thread" in plain.stderr.lower() or "0x" in plain.stderr:  # ids differ
        assert len(ended.err.splitlines()) == len(lines)
    else:
        assert ended.err.splitlines() == lines


def test_an_exception_leaves_its_type_message_and_user_line(any_program: Program) -> None:
    ended = any_program.run(
        "import json\n\ndef load(text):\n    return json.loads(text)\n\nload('{not json')\n"
    )
    raised = any_program.read(ended.pid).raised
    assert raised is not None and raised.where is not None
    assert raised.type == "JSONDecodeError"
    assert raised.message.startswith("Expecting property name")
    assert (raised.where.line, raised.where.function) == (4, "load")
    assert raised.where.file == str(any_program.folder / "script.py")
    assert "JSONDecodeError" in ended.err and ended.code == 1


@pytest.mark.parametrize(
    "body",
    [
        "def down(n):\n    return down(n + 1)\ndown(0)\n",
        "raise ValueError('\\u4e16' * 100000)\n",
        "exec(compile('def f(n):\\n    if n: f(n - 1)\\n    else: 1 / 0\\nf(90)\\n',"
        " 'x' * 5000, 'exec'))\n",
        "class Odd(Exception):\n    def __str__(self): raise KeyError('str')\nraise Odd()\n",
        "raise type('Long' * 3000, (Exception,), {})('x')\n",
    ],
    ids=["deep", "long message", "long paths", "no str", "long name"],
)
def test_any_exception_is_kept(program: Program, body: str) -> None:
    ended = program.run(body)
    assert ended.code == 1
    raised = program.read(ended.pid).raised
    assert raised is not None and raised.where is not None


def test_the_innermost_line_of_a_deep_stack_is_the_one(program: Program) -> None:
    ended = program.run(
        "def down(n):\n    if n == 0:\n        raise RuntimeError('deep')\n    down(n - 1)\n\ndown(600)\n"
    )
    raised = program.read(ended.pid).raised
    assert raised is not None and raised.where is not None
    assert raised.where.line == 3


def test_the_time_of_an_exception_is_when_it_was_raised(program: Program) -> None:
    process = program.start(
        "import atexit, sys\natexit.register(sys.stdin.readline)\nraise ValueError('first')\n"
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("ValueError"):
        pass
    box = program.box(process.pid)
    first = box.read_snapshot().raised
    process.communicate("\n")
    assert first is not None
    assert box.read_snapshot().raised == first


def test_a_replaced_excepthook_still_leaves_the_exception(any_program: Program) -> None:
    ended = any_program.run(
        "import sys\nsys.excepthook = lambda *_: print('mine')\nraise ValueError('kept')\n"
    )
    assert (ended.out, ended.err, ended.code) == ("mine\n", "", 1)
    raised = any_program.read(ended.pid).raised
    assert raised is not None and raised.message == "kept"


def test_a_users_excepthook_that_chains_is_called_once(program: Program) -> None:
    ended = program.run(
        "import sys\nbefore = sys.excepthook\n"
        "def hook(*told):\n    print('mine'); before(*told)\n"
        "sys.excepthook = hook\nraise ValueError('kept')\n"
    )
    assert ended.out == "mine\n" and ended.err.count("ValueError: kept") == 1


def test_sys_exit_is_no_exception(program: Program) -> None:
    ended = program.run("import sys; sys.exit(3)")
    seen = program.read(ended.pid)
    assert (seen.raised, seen.phase, ended.code) == (None, 8, 3)


def test_os_exit_leaves_a_readable_box(program: Program) -> None:
    ended = program.run("import os, _allaboard_probe.member as m; m.step(); os._exit(9)")
    seen = program.read(ended.pid)
    assert (seen.step, seen.phase, ended.code) == (1, 7, 9)


def test_the_users_signal_handlers_are_the_users(any_program: Program) -> None:
    process = any_program.start(
        "import os, signal, sys\n"
        "def handle(number, frame):\n    os.write(1, b'got %d\\n' % number)\n"
        "print(*{signal.getsignal(n) is signal.SIG_DFL for n in (1, 6, 10, 12, 15)})\n"
        "for n in (10, 12, 15): signal.signal(n, handle)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    assert process.stdout.readline() == "ready\n"
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        process.send_signal(number)
        assert process.stdout.readline() == f"got {int(number)}\n"
    process.communicate("\n")
    assert process.returncode == 0


def test_the_users_faulthandler_works(program: Program) -> None:
    ended = program.run(
        "import faulthandler, os, signal\nfaulthandler.enable()\n"
        "faulthandler.register(signal.SIGUSR1, all_threads=False)\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    assert ended.code == -signal.SIGSEGV
    assert "line 4 in <module>" in ended.err and "Segmentation fault" in ended.err


def test_a_thread_that_ended_by_an_exception_is_noted(any_program: Program) -> None:
    ended = any_program.run(
        "import threading, json\n"
        "def feed():\n    json.loads('{not json')\n"
        "t = threading.Thread(target=feed); t.start(); t.join(); print('on')\n"
    )
    assert (ended.code, ended.out) == (0, "on\n") and "JSONDecodeError" in ended.err
    seen = any_program.read(ended.pid)
    assert seen.raised is None
    noted = seen.notes["thread raised"]
    assert noted.startswith("JSONDecodeError: Expecting property name")
    assert noted.endswith("script.py:3 in feed")


def test_a_thread_that_leaves_by_sys_exit_is_not(program: Program) -> None:
    ended = program.run("import threading, sys\nthreading.Thread(target=sys.exit).start()\n")
    assert (ended.code, ended.err) == (0, "")
    assert "thread raised" not in program.read(ended.pid).notes


def test_an_adapter_that_fails_at_the_end_says_nothing_and_keeps_no_other_from_it(
    program: Program,
) -> None:
    ended = program.run(
        "import types\n"
        "from _allaboard_probe import bootstrap\n"
        "broken = types.SimpleNamespace(at_end=lambda: 1 / 0)\n"
        "sound = types.SimpleNamespace(at_end=lambda: print('let go'))\n"
        "bootstrap._end({'one': broken, 'two': sound})\n"
    )
    assert (ended.code, ended.out, ended.err) == (0, "let go\n", "")
