"""Children of a worker lie dormant until they call a distributed init themselves."""

from __future__ import annotations

import pytest

from probed import RENDEZVOUS, Program, fake_torch


def test_a_forked_child_does_not_write_into_its_parents_box(any_program: Program) -> None:
    fake_torch(any_program.folder)
    ended = any_program.run(
        "import os, torch.distributed as dist, _allaboard_probe.member as m\n"
        "m.step(); dist.all_reduce(1)\n"
        "if os.fork() == 0:\n"
        "    m.step(); m.here.note('child', 'wrote'); m.here.phase(8); dist.all_reduce(1)\n"
        "    raise ValueError('of the child')\n"
        "os.wait(); os._exit(0)\n"
    )
    assert "of the child" in ended.err
    seen = any_program.read(ended.pid)
    assert (seen.step, seen.ops, seen.raised, seen.phase) == (1, 1, None, 7)
    assert "child" not in seen.notes
    assert any_program.members() == [ended.pid]


def test_a_forked_child_that_calls_init_is_a_member(any_program: Program) -> None:
    fake_torch(any_program.folder)
    any_program.environment = dict(RENDEZVOUS, ALLABOARD_WORKER="4")
    ended = any_program.run(
        "import os, signal, torch.distributed as dist\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    dist.init_process_group('gloo'); dist.all_reduce(1)\n"
        "    os._exit(0)\n"
        "os.wait(); print(child)\n"
    )
    child = int(ended.out)
    assert any_program.members() == sorted([ended.pid, child])
    box = any_program.box(child)
    seen = box.read_snapshot()
    assert (seen.phase, seen.round, seen.ops, box.identity.worker) == (6, 1, 1, 4)
    assert seen.declared is not None and seen.declared.rank == 1
    parent = any_program.box(ended.pid)
    assert parent.read_snapshot().declared is None
    assert box.signum != parent.signum, "the inherited handler writes into the parent's file"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_of_multiprocessing_is_dormant_until_init(program: Program, method: str) -> None:
    fake_torch(program.folder)
    program.environment = RENDEZVOUS
    process = program.start(
        "import multiprocessing as mp, os\n"
        "def work(pipe):\n"
        "    import torch.distributed as dist\n"
        "    dist.all_reduce(1); pipe.send(os.getpid()); pipe.recv()\n"
        "    dist.init_process_group('gloo'); pipe.send(0); pipe.recv()\n"
        "if __name__ == '__main__':\n"
        f"    mp.set_start_method('{method}')\n"
        "    ours, theirs = mp.Pipe()\n"
        "    p = mp.Process(target=work, args=(theirs,)); p.start()\n"
        "    print(ours.recv(), flush=True); input(); ours.send(1)\n"
        "    print(ours.recv(), flush=True); input(); ours.send(1); p.join()\n"
    )
    assert process.stdout and process.stdin
    child = int(process.stdout.readline())
    assert program.members() == [process.pid]
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "0\n"
    assert program.members() == sorted([process.pid, child])
    assert program.read(child).phase == 6
    _, err = process.communicate("\n")
    assert (process.returncode, err) == (0, "")


def test_an_executed_child_is_dormant_and_its_own(program: Program) -> None:
    ended = program.run(
        "import subprocess, sys\n"
        "code = 'import _allaboard_probe.member as m; m.step(); print(m.here.box)'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    assert ended.out == "None\n"
    assert program.members() == [ended.pid]
    assert program.read(ended.pid).step == 0


CHILD = (
    "import multiprocessing as mp, sys\n"
    "def work(bad):\n"
    "    import torch.distributed as dist\n"
    "    dist.init_process_group('gloo')\n"
    "    if bad:\n"
    "        raise ValueError('of the child')\n"
    "class Own(mp.Process):\n"
    "    def run(self):\n"
    "        work(True)\n"
    "if __name__ == '__main__':\n"
)


@pytest.mark.parametrize("made", ["mp.Process(target=work, args=(1,))", "Own()"])
def test_what_a_child_of_multiprocessing_raises_is_kept(any_program: Program, made: str) -> None:
    fake_torch(any_program.folder)
    any_program.environment = RENDEZVOUS
    ended = any_program.run(
        CHILD + f"    p = {made}; p.start(); p.join(); print(p.pid, p.exitcode)\n"
    )
    child, code = map(int, ended.out.split())
    raised = any_program.read(child).raised
    assert raised is not None and (raised.type, raised.message) == ("ValueError", "of the child")
    assert raised.where is not None and raised.where.function == "work"
    assert code == 1 and "ValueError: of the child" in ended.err
    assert any_program.read(ended.pid).raised is None


def test_a_child_that_ends_well_or_by_sys_exit_raised_nothing(program: Program) -> None:
    fake_torch(program.folder)
    program.environment = RENDEZVOUS
    ended = program.run(
        CHILD + "    p = mp.Process(target=work, args=(0,)); p.start(); p.join()\n"
        "    q = mp.Process(target=lambda: (work(0), sys.exit(3))); q.start(); q.join()\n"
        "    print(p.pid, p.exitcode, q.pid, q.exitcode)\n"
    )
    first, good, second, bad = map(int, ended.out.split())
    assert (good, bad) == (0, 3), ended.err
    assert program.read(first).raised is None and program.read(second).raised is None


def test_a_process_that_starts_others_of_its_own_methods(program: Program) -> None:
    ended = program.run(
        "import multiprocessing as mp\n"
        "class Actor(mp.Process):\n"
        "    def evaluate(self): pass\n"
        "    def run(self):\n"
        "        p = mp.get_context('spawn').Process(target=self.evaluate)\n"
        "        p.start(); p.join(); print(p.exitcode, 'run' in vars(self), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    mp.set_start_method('fork'); a = Actor(); a.start(); a.join()\n"
    )
    assert ended.out.split() == ["0", "False"], ended.err


def test_what_an_exception_held_is_freed_with_it(program: Program) -> None:
    ended = program.run(
        "import multiprocessing as mp, os, threading\n"
        "class Held:\n"
        "    def __del__(self): os.write(1, b'freed ')\n"
        "def work():\n"
        "    held = Held(); 1 / 0\n"
        "if __name__ == '__main__':\n"
        "    mp.set_start_method('fork')\n"
        "    threading._shutdown = lambda: os.write(1, b'waits')\n"
        "    p = mp.Process(target=work); p.start(); p.join(); os._exit(0)\n"
    )
    assert ended.out == "freed waits", ended.err
    assert "ZeroDivisionError" in ended.err


@pytest.mark.parametrize(
    ("afterwards", "noted"),
    [
        ("", True),
        ("p.is_alive(), repr(p)", True),
        ("q = context.Process(target=int); q.start(); q.join()", False),
        ("assert p.exitcode == 1", False),
    ],
)
def test_a_process_that_fails_is_noted_until_another_one_is_started_or_its_code_is_read(
    any_program: Program, afterwards: str, noted: bool
) -> None:
    fake_torch(any_program.folder)
    ended = any_program.run(
        "import multiprocessing as mp, os, _allaboard_probe.member as m\n"
        "def work():\n"
        "    {}['pong']\n"
        "m.step(); context = mp.get_context('fork')\n"
        "p = context.Process(target=work); p.start(); p.join()\n"
        f"{afterwards}\n"
        "print(p.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    said = any_program.read(ended.pid).notes.get("process failed")
    assert said == f"{ended.out.strip()} 1" if noted else not said, ended.err


@pytest.mark.parametrize(("number", "noted"), [(9, True), (15, False)])
def test_a_process_of_multiprocessing_that_is_killed_is_noted(
    any_program: Program, number: int, noted: bool
) -> None:
    fake_torch(any_program.folder)
    ended = any_program.run(
        "import multiprocessing as mp, os, _allaboard_probe.member as m\n"
        "def work():\n"
        f"    os.kill(os.getpid(), {number})\n"
        "m.step()\n"
        "child = mp.get_context('fork').Process(target=work)\n"
        "child.start(); child.join(); print(child.pid, child.exitcode, flush=True)\n"
        "os._exit(0)\n"
    )
    pid, code = ended.out.split()
    assert int(code) == -number
    said = any_program.read(ended.pid).notes.get("process killed")
    assert said == (f"{pid} {number} 1" if noted else None)
