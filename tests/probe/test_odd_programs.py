"""Programs that do what the probe does not expect: they run as they would without it, and are still read."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from allaboard.hosts import proc
from allaboard.sampling import stack_sampler
from probed import LIMIT, RENDEZVOUS, Program, fake_torch

STEPS = "import _allaboard_probe.member as m\nm.step(); m.step()\n"

RENAMED = """
import ctypes, sys
libc = ctypes.CDLL(None)
assert libc.prctl(15, b") R 1 (\\xff", 0, 0, 0) == 0  # PR_SET_NAME
fields = open("/proc/self/stat", "rb").read().rpartition(b")")[2].split()
begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, proc(5)
ctypes.memset(begin, ord("x"), end - begin - 1)
"""

INTERPRETER = """
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
one = interpreters.create()
run(one, "import os, sys; print('inside', flush=True)")
"""


def said(program: Program, code: str, word: str = "ready") -> int:
    """Starts it; its pid, once it has said the word."""
    process = program.start(code)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == f"{word}\n", process.communicate()
    return process.pid


def test_a_worker_that_renames_itself(program: Program) -> None:
    fake_torch(program.folder)
    program.environment = RENDEZVOUS
    pid = said(
        program,
        f"{RENAMED}{STEPS}import torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "def wait():\n    print('ready', flush=True)\n    sys.stdin.readline()\nwait()\n",
    )
    seen = proc.read_stat(pid)
    assert seen is not None and seen.ppid == os.getpid() and seen.state in "RS"
    assert proc.command_line(pid) and set(proc.command_line(pid)[0]) == {"x"}
    box = program.box(pid)
    assert (box.read_snapshot().step, box.started) == (2, seen.start_ticks)
    until = time.monotonic() + LIMIT
    while not any(
        f.function == "wait" for f in asyncio.run(stack_sampler.sample_stack(pid, box, 1.0)).frames
    ):
        assert time.monotonic() < until


def test_a_sub_interpreter_leaves_the_box_to_the_main_one(any_program: Program) -> None:
    fake_torch(any_program.folder)
    any_program.environment = RENDEZVOUS
    pid = said(
        any_program,
        "import sys, torch.distributed as dist\n"
        f"{STEPS}dist.init_process_group('gloo')\ndist.all_reduce(1)\n{INTERPRETER}"
        "def wait():\n    sys.stdin.readline()\n    interpreters.destroy(one)\n    m.step()\nwait()\n",
        "inside",
    )
    box = any_program.box(pid)
    seen = box.read_snapshot()
    assert seen.declared is not None and seen.declared.rank == 1
    assert (seen.step, seen.ops, seen.phase) == (2, 1, 6)
    caught = [n for n in range(signal.SIGRTMIN, signal.SIGRTMAX) if proc.has_handler(pid, n)]
    assert caught == [box.signum], "one private signal, whose stacks are the main interpreter's"
    process = any_program.started[0]
    _, errors = process.communicate("\n", timeout=LIMIT)
    assert (process.returncode, errors) == (0, "")
    assert (box.read_snapshot().step, box.read_snapshot().phase) == (3, 8)


@pytest.mark.parametrize(
    "wakes", ["m.here.wake()", "t = threading.Thread(target=m.here.wake); t.start(); t.join()"]
)
def test_a_look_that_comes_when_the_interpreter_has_ended_harms_nobody(
    any_program: Program, wakes: str
) -> None:
    """exit(3) calls on_exit(3)'s functions after the interpreter's end, each with the exit code."""
    ended = any_program.run(
        f"import ctypes, sys, threading\nimport _allaboard_probe.member as m\n{wakes}\n"
        "lines = [line.split() for line in open('/proc/self/status')]\n"
        "number = int(dict(line[:2] for line in lines if len(line) > 1)['SigCgt:'], 16).bit_length()\n"
        "ctypes.CDLL(None).on_exit(getattr(ctypes.CDLL(None), 'raise'), None)\n"
        "print(number)\nsys.exit(number)\n"
    )
    assert ended.err == "" and ended.code == int(ended.out) > signal.SIGRTMIN


def test_more_threads_than_there_is_room_for(program: Program) -> None:
    fake_torch(program.folder)
    ended = program.run(
        "import threading, torch.distributed as dist\n"
        "met = threading.Barrier(41)\n"
        "def work():\n    met.wait()\n    for _ in range(50): dist.all_reduce(1)\n    met.wait()\n"
        "all_ = [threading.Thread(target=work) for _ in range(40)]\n"
        "[t.start() for t in all_]; met.wait(); met.wait(); [t.join() for t in all_]\n"
        "dist.all_reduce(1)\n"
    )
    assert (ended.code, ended.err) == (0, "")
    seen = program.read(ended.pid)
    assert seen.op is None and seen.ops == 15 * 50 + 1


def test_a_wakeup_descriptor_hears_the_users_signals_alone(program: Program) -> None:
    pid = said(
        program,
        "import os, signal, sys\n"
        "out, into = os.pipe()\nos.set_blocking(into, False)\n"
        "signal.set_wakeup_fd(into)\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
        "def wait():\n    print('ready', flush=True)\n    sys.stdin.readline()\nwait()\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\nprint(list(os.read(out, 99)), flush=True)\n",
    )
    box = program.box(pid)
    until = time.monotonic() + LIMIT
    while asyncio.run(stack_sampler.sample_stack(pid, box, 1.0)).by != "faulthandler":
        assert time.monotonic() < until
    out, _ = program.started[0].communicate("\n", timeout=LIMIT)
    assert out == f"[{int(signal.SIGUSR1)}]\n"


@pytest.mark.parametrize("which", ["range(1, 65)", "range(35, 65)"])
def test_who_handles_all_signals_is_sent_none(program: Program, which: str) -> None:
    pid = said(
        program,
        "import os, signal, sys\n"
        "def handle(number, frame):\n    print('got', number, flush=True)\n"
        f"for n in {which}:\n"
        "    try:\n        signal.signal(n, handle)\n"
        "    except (OSError, ValueError):\n        pass\n"
        "def wait():\n    print('ready', flush=True)\n    sys.stdin.readline()\nwait()\n",
    )
    box = program.box(pid)
    assert proc.has_handler(pid, box.signum), "its own handler by now"
    assert asyncio.run(stack_sampler.sample_stack(pid, box, 1.0)).by == "py-spy"
    out, _ = program.started[0].communicate("\n", timeout=LIMIT)
    assert out == ""


def test_a_program_that_blocks_all_signals(program: Program) -> None:
    pid = said(
        program,
        "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "def wait():\n    print('ready', flush=True)\n    sys.stdin.readline()\nwait()\n",
    )
    box = program.box(pid)
    for _ in range(2):
        assert asyncio.run(stack_sampler.sample_stack(pid, box, 1.0)).frames
    program.started[0].communicate("\n", timeout=LIMIT)
    assert program.started[0].returncode == 0
