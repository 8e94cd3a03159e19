"""Stacks of real processes: by their own faulthandler, and by py-spy where that cannot answer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from allaboard.blackbox.reader import OpenBox
from allaboard.facts import Frame
from allaboard.facts.stack import ENDED_CHILD
from allaboard.formats.dumps.thread_dumps.stack_frames import parse_faulthandler
from allaboard.hosts import proc
from allaboard.protocol.events import StackSampled
from allaboard.sampling import faulthandler_stacks, pyspy, source_lines, stack_sampler
from probed import LIMIT, Program

WAITING = """
import sys, threading
def other():
    threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
def wait():
    print("ready", flush=True)
    sys.stdin.readline()  # waits here
wait()
"""


NOBODY = 1 << 22
"""No process has this pid: proc(5), pid_max. py-spy says so within some milliseconds."""


def ready(program: Program, code: str) -> OpenBox:
    """Its box, once it has come to the line after the one that says so."""
    process = program.start(code)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    said = next(n for n, line in enumerate(code.splitlines(), 1) if '"ready"' in line)
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        frames, _ = asyncio.run(pyspy.spy_main_thread(process.pid))
        if any(f.function == "wait" and f.line > said for f in frames):
            return program.box(process.pid)
    raise TimeoutError


def look(box: OpenBox, known: bool = True) -> StackSampled:
    return asyncio.run(stack_sampler.sample_stack(box.pid, box if known else None, 5.0))


def waits_here(frames: tuple[Frame, ...]) -> Frame:
    return next(f for f in frames if f.function == "wait" and "script.py" in f.file)


def alive(box: OpenBox) -> bool:
    seen = proc.read_stat(box.pid)
    return seen is not None and seen.state not in "ZX"


def test_stacks_that_it_writes_for_us_are_no_output_of_its_own(program: Program) -> None:
    box = ready(program, WAITING)
    first = look(box)
    last = [look(box) for _ in range(5)][-1]
    assert last.by == "faulthandler" and box.dumped_bytes > 1000
    assert last.io == first.io


def test_a_process_tells_its_own_stack(program: Program) -> None:
    box = ready(program, WAITING)
    box.read_snapshot()
    seen = look(box)
    assert (seen.by, seen.pid, seen.sampled_at) == ("faulthandler", box.pid, 5.0)
    frame = waits_here(seen.frames)
    assert (frame.line, frame.text) == (8, "sys.stdin.readline()  # waits here")
    assert seen.frames[-1].function == "<module>"
    assert seen.cpu > 0
    again = look(box)
    assert again.frames == seen.frames, "the second answer does not stand behind the first"


def test_the_real_dump_names_both_threads(program: Program) -> None:
    box = ready(program, WAITING)
    look(box)
    text = box.stacks.read_text()
    assert text.count("most recent call first") == 2
    assert waits_here(parse_faulthandler(text, box.main_thread)).line == 8
    assert parse_faulthandler(text, 0) == parse_faulthandler(text, box.main_thread)
    assert parse_faulthandler(text, 12345) == ()


def test_a_process_that_holds_the_gil_answers(program: Program) -> None:
    box = ready(
        program,
        'def wait():\n    print("ready", flush=True)\n    return sum(range(10**13))\nwait()\n',
    )
    asked = asyncio.run(faulthandler_stacks.ask_faulthandler(box))
    assert waits_here(asked[0]).line == 3
    seen = look(box)  # it runs: faulthandler would walk frames that may change under it
    assert (seen.by, waits_here(seen.frames).line) == ("py-spy", 3)


def test_a_program_that_closed_all_its_files_is_looked_at_from_outside(program: Program) -> None:
    box = ready(
        program, WAITING.replace("import sys", "import os; os.closerange(3, 4096); import sys")
    )
    assert proc.has_handler(box.pid, box.signum)
    assert not proc.points_to(box.pid, box.stack_fd, box.stacks)
    assert asyncio.run(faulthandler_stacks.ask_faulthandler(box)) == []
    seen = look(box)
    assert (seen.by, waits_here(seen.frames).line) == ("py-spy", 8)
    assert alive(box)


def test_a_stack_file_that_became_anothers_is_left_alone(program: Program) -> None:
    box = ready(
        program,
        "import os, sys\n"
        "mine = os.open('data', os.O_CREAT | os.O_RDWR)\n"
        "for fd in range(100, 300):\n    os.dup2(mine, fd)\n"
        'def wait():\n    print("ready", flush=True)\n    sys.stdin.readline()\n'
        "wait()\n",
    )
    seen = look(box)
    assert seen.by == "py-spy"
    assert (program.folder / "data").read_bytes() == b""


def test_a_stopped_process_is_not_asked(program: Program) -> None:
    box = ready(program, WAITING)
    os.kill(box.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, box.pid, os.WSTOPPED | os.WNOWAIT)
    seen = look(box)
    assert (seen.by, waits_here(seen.frames).line) == ("py-spy", 8)
    state = proc.read_stat(box.pid)
    assert state is not None and state.state == "T", "a look does not set it going"


def test_an_executed_program_never_gets_the_signal(program: Program) -> None:
    process = program.start("import os; os.execv('/bin/sh', ['sh', '-c', 'echo ready; read line'])")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    box = program.box(process.pid)
    assert box.signum > 0
    assert not proc.has_handler(box.pid, box.signum)
    assert look(box).frames == ()
    assert alive(box)
    process.communicate("\n", timeout=LIMIT)
    assert process.returncode == 0


def test_a_child_never_gets_the_signal(program: Program) -> None:
    """A child has no box; who asks it is py-spy."""
    process = program.start(
        "import subprocess, sys\n"
        "code = 'import os; print(os.getpid(), flush=True); input()'\n"
        "subprocess.run([sys.executable, '-c', code])\n"
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    box = program.box(process.pid)
    assert proc.has_handler(process.pid, box.signum)
    assert not proc.has_handler(child, box.signum)
    assert asyncio.run(stack_sampler.sample_stack(child, None, 0.0)).by == "py-spy"


def test_a_dead_process_has_no_stack(program: Program) -> None:
    box = ready(program, WAITING)
    program.close()
    seen = look(box)
    assert (seen.frames, seen.cpu, seen.io) == ((), 0.0, 0)


def test_another_process_with_the_pid_is_not_asked(program: Program) -> None:
    box = ready(program, WAITING)
    box.started -= 1
    assert asyncio.run(faulthandler_stacks.ask_faulthandler(box)) == []


def test_a_folder_that_is_gone_is_no_answer(tmp_path: Path) -> None:
    assert asyncio.run(pyspy.spy_main_thread(2**22 + 1))[0] == ()
    with pytest.raises(OSError):
        asyncio.run(faulthandler_stacks.read_finished_dump(tmp_path / "gone.stacks"))


def test_a_dump_without_the_main_thread_is_no_answer(program: Program) -> None:
    """faulthandler stops after a hundred threads, newest first."""
    box = ready(
        program,
        "import sys, threading\nend = threading.Event()\n"
        "for _ in range(110):\n    threading.Thread(target=end.wait, daemon=True).start()\n"
        'def wait():\n    print("ready", flush=True)\n    sys.stdin.readline()\n'
        "wait()\n",
    )
    seen = look(box)
    assert (seen.by, waits_here(seen.frames).line) == ("py-spy", 7)


def test_py_spy_prints_what_is_read(program: Program) -> None:
    box = ready(program, WAITING)
    spy = pyspy.find_pyspy()
    assert spy is not None
    command = [spy, "dump", "--json", "--nonblocking", "--pid", str(box.pid)]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    assert b'"MainThread"' in text
    frame = waits_here(asyncio.run(pyspy.spy_main_thread(box.pid))[0])
    assert (frame.line, frame.is_user) == (8, True)


def test_source_is_added_to_the_users_frames_alone(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("a = 1\n    loss = step()   \n")
    mine, gone = Frame(str(script), 2, "train"), Frame("<string>", 1, "f")
    theirs = Frame("/v/site-packages/torch/x.py", 1, "f")
    assert [f.text for f in source_lines.with_source((mine, gone, theirs))] == [
        "loss = step()",
        "",
        "",
    ]


def test_the_threads_of_a_process_that_runs_are_told_too(program: Program) -> None:
    box = ready(
        program,
        "import threading\n"
        "lock = threading.Lock()\n"
        "def other():\n    with lock:\n        threading.Event().wait()\n"
        "def busy():\n    while True:\n        pass\n"
        "for job in (other, busy):\n    threading.Thread(target=job, daemon=True).start()\n"
        'def wait():\n    print("ready", flush=True)\n    lock.acquire()\n'
        "wait()\n",
    )
    until = time.monotonic() + LIMIT
    while not proc.is_on_cpu(box.pid) and time.monotonic() < until:
        pass
    seen = look(box)
    assert (seen.by, waits_here(seen.frames).line) == ("py-spy", 13)
    held = {(t.frame.function, t.wants, t.holds) for t in seen.threads}
    assert held == {("wait", "lock", ()), ("other", "", ("lock",))}


ASKS = """
import multiprocessing, os, sys
if __name__ == "__main__":
    ends, _keeps = multiprocessing.Pipe()
    if (child := os.fork()) == 0:
        os._exit(3)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    def wait():
        print("ready", flush=True)
        ends.recv()  # waits here
    wait()
"""


def test_of_who_waits_for_an_answer_the_children_that_have_ended_are_known(
    program: Program,
) -> None:
    seen = look(ready(program, ASKS))
    assert [what for _, what in seen.children] == [ENDED_CHILD]


def test_a_look_that_is_called_off_leaves_no_child_and_no_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The job ends while py-spy looks: whoever waited for it must be the only one to reap it."""

    async def called_off(after: float) -> None:
        task = asyncio.create_task(pyspy.spy_main_thread(NOBODY))
        await asyncio.wait({task}, timeout=after)
        task.cancel()
        await asyncio.wait({task})

    async def many() -> None:
        for tenth in range(100):
            await called_off(tenth / 10_000)

    asyncio.run(many())
    assert [r.getMessage() for r in caplog.records] == []
    left = proc.descendants_of(os.getpid())
    assert not [pid for pid in left if "py-spy" in " ".join(proc.command_line(pid))]


HALTS = """
import os, signal, sys
if __name__ == "__main__":
    if (child := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOWAIT)
    def wait():
        print("ready", flush=True)
        sys.stdin.readline()  # waits here
    wait()
"""


def test_a_process_below_that_is_stopped_is_seen(program: Program) -> None:
    box = ready(program, HALTS)
    (child,) = proc.descendants_of(box.pid)
    try:
        assert look(box).stopped == (child,)
    finally:
        os.kill(child, signal.SIGKILL)
