"""What threads want and hold, by the text of their code."""

from __future__ import annotations

import linecache
from pathlib import Path

from allaboard.facts import Frame, Holds
from allaboard.sampling.lock_owners import (
    awaits_external_answer,
    is_feeding_generator,
    lock_holds,
    other_user_frames,
)

CODE = """
def flush(log, cache):
    with log:
        if True:
            with cache:
                pass
    cache.acquire(timeout=9)

def fill(self, cache):
    with open("x") as file, self.lock:
        file.read()
    for _ in range(3): pass
"""


def test_a_thread_holds_the_blocks_that_it_is_inside_of(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(CODE)

    def at(line: int, function: str) -> Frame:
        text = linecache.getline(str(file), line).strip()
        return Frame(str(file), line, function, text)

    main, other = at(5, "flush"), at(11, "fill")
    assert lock_holds([(main,), (other,)]) == (
        Holds(main, "cache", ("log",)),
        Holds(other, "", ("self.lock", "open('x')")),
    )
    acquires = at(7, "flush")
    assert lock_holds([(acquires,)]) == (Holds(acquires, "cache"),)
    assert lock_holds([(at(12, "fill"),), (main,)]) == (), "the main thread wants none"
    assert lock_holds([]) == () and lock_holds([()]) == ()


HANDLER = """
def log(lock):
    with lock:
        write()

def on_alarm(lock):
    log(lock)

def save(lock):
    with lock:
        log(lock)
"""


def test_a_thread_that_wants_a_lock_which_it_holds_itself(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HANDLER)

    def at(line: int, function: str) -> Frame:
        return Frame(str(file), line, function, linecache.getline(str(file), line).strip())

    wants, writes, handler, save = at(3, "log"), at(4, "log"), at(7, "on_alarm"), at(11, "save")
    (interrupted,) = lock_holds([(wants, handler, writes)])
    assert (interrupted.held_at, interrupted.interrupts) == (writes, handler)
    (again,) = lock_holds([(wants, handler, wants, handler, writes)])
    assert (again.held_at, again.interrupts) == (writes, handler), "interrupted while it waits"
    (calls,) = lock_holds([(wants, save)])
    assert (calls.held_at, calls.interrupts) == (save, None)
    (outside,) = lock_holds([(wants, handler)])
    assert outside.held_at is None, "nobody further out holds it"


def test_a_lock_of_another_object_is_not_the_same(tmp_path: Path) -> None:
    leaf, tree = tmp_path / "leaf.py", tmp_path / "tree.py"
    leaf.write_text("def update(self):\n    with self.lock:\n        pass\n")
    tree.write_text("def update(self):\n    with self.lock:\n        self.leaf.update()\n")
    wants = Frame(str(leaf), 2, "update", "with self.lock:")
    holds = Frame(str(tree), 3, "update", "self.leaf.update()")
    (thread,) = lock_holds([(wants, holds)])
    assert thread.wants == "self.lock" and thread.held_at is None


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("with a:\n  def (\n")
    for name in ("bad.py", "none.py"):
        frame = Frame(str(tmp_path / name), 1, "f", "with a:")
        assert lock_holds([(frame,)]) == (Holds(frame, "a"),)


def test_a_generator_in_a_thread_of_the_framework() -> None:
    rows = Frame("/home/u/train.py", 29, "rows")
    calls = Frame("/v/site-packages/tensorflow/python/ops/script_ops.py", 150, "__call__")
    library = Frame("/v/site-packages/tensorflow/python/data/ops/from_generator_op.py", 196, "f")
    assert is_feeding_generator((rows, library, calls))
    assert not is_feeding_generator((library, calls)), "TensorFlow's own Python"
    assert not is_feeding_generator((rows,)), "a thread of the user's own"
    assert not is_feeding_generator((calls, rows)), "who made the call, and not what was called"
    assert not is_feeding_generator(())


def test_a_thread_of_the_program_asks_another_process() -> None:
    std = "/usr/lib/python3.11/"
    reads = Frame(std + "socket.py", 720, "readinto")
    pool = Frame(std + "concurrent/futures/thread.py", 58, "run")
    own = Frame("/home/u/train.py", 9, "reward", "urlopen(url)")
    assert awaits_external_answer((reads, own))
    assert awaits_external_answer((reads, pool))
    assert not awaits_external_answer(
        (reads, Frame(std + "threading.py", 982, "run"))
    )  # a library keeps it for itself
    assert not awaits_external_answer((pool,))


def test_where_the_others_are_while_the_main_one_waits_for_one_of_them() -> None:
    wait = Frame("/usr/lib/python3.11/threading.py", 1119, "join")
    main = Frame("/home/u/train.py", 50, "<module>", "trainer.join()")
    item = Frame("/usr/lib/python3.11/queue.py", 171, "get")
    step = Frame("/home/u/train.py", 17, "steps", "rows = queue.get()")
    library = Frame("/v/lib/python3.11/site-packages/tqdm/_monitor.py", 60, "run")
    assert other_user_frames([(wait, main), (item, step), (library,), (step,)]) == (step,)
    named = Frame("/home/u/train.py", 51, "<module>", "with lock:")
    assert other_user_frames([(named,), (item, step)]) == ()
