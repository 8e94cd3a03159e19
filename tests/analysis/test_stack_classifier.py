"""What a member does, told from its frames."""

from __future__ import annotations

import pytest

from allaboard.analysis.stacks.stack_classifier import (
    Spot,
    classify_stack,
    is_peer_wait,
    is_same_place,
    trim_state_queries,
)
from allaboard.facts import Frame
from allaboard.facts.samples import REDUCE, USER, sample_stack

SITE = "/v/lib/python3.11/site-packages/"
STD = "/usr/lib/python3.11/"
FEDORA = "/usr/lib64/python3.12/"


def user(text: str) -> Frame:
    return Frame("/home/u/train.py", 41, "train", text)


def lib(file: str, function: str, root: str = SITE) -> Frame:
    return Frame(root + file, 10, function)


TABLE = [
    ((Frame("/x/allaboard/probe/gate.py", 30, "wait"), USER), Spot.GATE),
    ((lib("torch/distributed/rendezvous.py", "_env_rendezvous_handler"), USER), Spot.INIT),
    ((lib("torch/distributed/distributed_c10d.py", "init_process_group"), USER), Spot.INIT),
    ((lib("torch/distributed/distributed_c10d.py", "new_group"), USER), Spot.GROUP),
    ((lib("torch/distributed/distributed_c10d.py", "destroy_process_group"), USER), Spot.LEAVING),
    ((REDUCE, USER), Spot.COLLECTIVE),
    (
        (
            lib("torch/_ops.py", "__call__"),
            user("torch.ops._c10d_functional.wait_tensor.default(buf3)"),
        ),
        Spot.COLLECTIVE,
    ),
    ((lib("torch/_ops.py", "__call__"), user("torch.ops.mine.solve(rows)")), Spot.USER),
    ((user("work.wait()"),), Spot.COLLECTIVE),
    ((user("handles[0].wait()"),), Spot.COLLECTIVE),
    ((user("dist.isend(x, 1).wait()"),), Spot.COLLECTIVE),
    ((user("fut.wait()"),), Spot.USER),
    ((user("loss = future.wait()"),), Spot.USER),
    ((user("wait()"),), Spot.USER),
    ((lib("threading.py", "wait", STD), user("event.wait()")), Spot.LOCK),
    ((lib("torch/distributed/utils.py", "_verify_param_shape_across_processes"),), Spot.COLLECTIVE),
    (
        (
            lib("threading.py", "wait", STD),
            lib("multiprocessing/pool.py", "map", STD),
            lib(
                "tensorflow/python/distribute/cross_device_ops.py", "_all_reduce_per_replica_values"
            ),
            USER,
        ),
        Spot.COLLECTIVE,
    ),
    (
        (lib("threading.py", "wait", STD), lib("multiprocessing/pool.py", "map", STD), USER),
        Spot.LOCK,
    ),
    ((lib("torch/autograd/graph.py", "_engine_run_backward"), USER), Spot.STEP),
    ((lib("torch/autograd/__init__.py", "backward"), USER), Spot.STEP),
    ((lib("torch/utils/data/dataloader.py", "__next__"), USER), Spot.DATA),
    (
        (
            lib("threading.py", "wait", STD),
            lib("queue.py", "get", STD),
            lib("torch/utils/data/dataloader.py", "_try_get_data"),
            USER,
        ),
        Spot.DATA,
    ),
    ((user("time.sleep(9)"), lib("torch/utils/data/_utils/fetch.py", "fetch"), USER), Spot.DATA),
    ((lib("torch/serialization.py", "load"), USER), Spot.CHECKPOINT),
    ((lib("torch/distributed/checkpoint/state_dict_saver.py", "save"), USER), Spot.CHECKPOINT),
    ((lib("tensorflow/python/eager/context.py", "ensure_initialized"), USER), Spot.INIT),
    ((lib("tensorflow/python/eager/context.py", "call_function"), USER), Spot.STEP),
    ((lib("tensorflow/python/eager/execute.py", "quick_execute"), USER), Spot.STEP),
    ((lib("tensorflow/python/client/session.py", "close"), USER), Spot.SESSION),
    ((lib("tensorflow/python/client/session.py", "_call_tf_sessionrun"), USER), Spot.STEP),
    ((lib("tensorflow/python/training/coordinator.py", "join"), USER), Spot.SESSION),
    ((lib("tensorflow/python/training/session_manager.py", "recover_session"), USER), Spot.SESSION),
    (
        (
            user("self.table.read()"),
            lib("tensorflow/python/training/monitored_session.py", "close"),
        ),
        Spot.USER,
    ),
    ((lib("tensorflow/python/data/ops/iterator_ops.py", "__next__"), USER), Spot.DATA),
    ((lib("tensorflow/python/data/ops/iterator_ops.py", "get_next_as_optional"), USER), Spot.DATA),
    ((lib("jax/_src/distributed.py", "initialize"), USER), Spot.INIT),
    ((lib("jax/_src/distributed.py", "shutdown"),), Spot.LEAVING),
    ((lib("keras/src/backend/jax/core.py", "convert_to_numpy"), USER), Spot.STEP),
    ((lib("filelock/_api.py", "acquire"), USER), Spot.FILE_LOCK),
    (
        (lib("pdb.py", "interaction", STD), lib("bdb.py", "trace_dispatch", STD), USER),
        Spot.DEBUGGER,
    ),
    ((lib("threading.py", "_shutdown", STD),), Spot.LEAVING),
    ((lib("threading.py", "join", STD), USER), Spot.LOCK),
    ((lib("threading.py", "acquire", FEDORA), USER), Spot.LOCK),
    ((Frame("<frozen importlib._bootstrap>", 241, "_call_with_frames_removed"), USER), Spot.IMPORT),
    ((user("fcntl.flock(file, fcntl.LOCK_EX)"),), Spot.FILE_LOCK),
    ((user("sleep(3)"),), Spot.SLEEP),
    ((user("name = input('? ')"),), Spot.INPUT),
    ((user("reward = float(actor.stdout.readline())"),), Spot.CHILD),
    ((user("for line in game.stdout:"),), Spot.CHILD),
    ((user("sys.stdout.write(line)"),), Spot.USER),
    ((user("for line in sys.stdin:"),), Spot.INPUT),
    ((user("line = fifo.readline()"),), Spot.ANSWER),
    ((user("data = self.sock.recv(4096)"),), Spot.ANSWER),
    ((lib("socket.py", "readinto", STD), lib("http/client.py", "begin", STD), USER), Spot.ANSWER),
    (
        (lib("selectors.py", "select", STD), lib("asyncio/runners.py", "run", STD), USER),
        Spot.ANSWER,
    ),
    ((lib("multiprocessing/connection.py", "_recv", STD), USER), Spot.ANSWER),
    (
        (
            lib("threading.py", "wait", STD),
            lib("multiprocessing/pool.py", "wait", STD),
            lib("multiprocessing/pool.py", "get", STD),
            USER,
        ),
        Spot.ANSWER,
    ),
    ((lib("threading.py", "wait", STD), lib("queue.py", "get", STD), USER), Spot.LOCK),
    ((lib("torch/futures/__init__.py", "wait"), USER), Spot.ANSWER),
    (
        (
            lib("multiprocessing/connection.py", "wait", STD),
            lib("torch/utils/data/dataloader.py", "_get_data"),
            USER,
        ),
        Spot.DATA,
    ),
    (
        (lib("selectors.py", "select", STD), lib("orbax/checkpoint/checkpointer.py", "save"), USER),
        Spot.CHECKPOINT,
    ),
    # What the user's own code does below a library is its own.
    ((user("x += 1"), lib("selectors.py", "select", STD), USER), Spot.USER),
    ((user("self.lock.acquire()"),), Spot.LOCK),
    ((user("with model_lock:"),), Spot.LOCK),
    ((user("x += 1"),), Spot.USER),
    ((lib("numpy/core.py", "dot"), USER), Spot.USER),
    ((lib("numpy/core.py", "dot"),), Spot.UNKNOWN),
    ((), Spot.UNKNOWN),
]


@pytest.mark.parametrize(
    ("frames", "meaning"), TABLE, ids=[f"{i}-{m.name}" for i, (_, m) in enumerate(TABLE)]
)
def test_a_place_has_a_meaning(frames: tuple[Frame, ...], meaning: Spot) -> None:
    assert classify_stack(sample_stack(*frames)) is meaning


def test_a_line_that_a_library_made_is_nobody_s() -> None:
    made = Frame("<string>", 2, "get")
    assert (
        sample_stack(lib("multiprocessing/managers.py", "_callmethod", STD), made, USER).user
        is USER
    )
    assert sample_stack(made).user is made  # python -c


def test_nobody_looked() -> None:
    assert classify_stack(None) is Spot.UNKNOWN
    assert not is_peer_wait(None)


def test_who_waits_for_peers() -> None:
    waiting = {s for f, s in TABLE if is_peer_wait(sample_stack(*f))}
    assert waiting == {Spot.GATE, Spot.INIT, Spot.GROUP, Spot.COLLECTIVE, Spot.STEP, Spot.SESSION}


@pytest.mark.parametrize(
    ("file", "mine"),
    [
        ("/home/u/train.py", True),
        ("<string>", True),
        (SITE + "torch/x.py", False),
        ("/usr/lib/python3/dist-packages/torch/x.py", False),
        (STD + "threading.py", False),
        (FEDORA + "threading.py", False),
        ("/opt/allaboard/probe/gate.py", False),
        ("<frozen runpy>", False),
    ],
)
def test_whose_frame_it_is(file: str, mine: bool) -> None:
    assert Frame(file, 1, "f").is_user is mine


def test_one_place_may_differ_in_its_innermost_line_alone() -> None:
    here = (Frame("a.py", 5, "loop"), Frame("a.py", 9, "main"))
    assert is_same_place(here, here)
    assert is_same_place(here, (Frame("a.py", 6, "loop"), here[1]))
    assert not is_same_place(here, (here[0], Frame("a.py", 10, "main")))
    assert not is_same_place(here, (Frame("a.py", 5, "other"), here[1]))
    assert not is_same_place(here, (Frame("b.py", 5, "loop"), here[1]))
    assert not is_same_place(here, here[:1])
    assert is_same_place((), ())


def test_a_handler_that_is_interrupted_again_while_it_waits_for_a_lock_stays_at_one_place() -> None:
    wants, handler = user("with lock:"), Frame("/home/u/train.py", 50, "on_alarm", "log()")
    outer = Frame("/home/u/train.py", 42, "train", "write()")
    once, twice = (wants, handler, outer), (wants, handler, wants, handler, outer)
    assert is_same_place(once, twice) and is_same_place(twice, once)
    assert not is_same_place(once, (wants, outer))
    computes = user("return visit(node.left)")
    assert not is_same_place((computes, outer), (computes, computes, outer)), "a recursion moves"


@pytest.mark.parametrize(
    "inner",
    [
        (Frame("<frozen genericpath>", 19, "exists"),),
        (lib("genericpath.py", "isfile", STD),),
        (lib("pathlib.py", "stat", STD), lib("pathlib.py", "exists", STD)),
        (lib("threading.py", "is_set", FEDORA),),
        (lib("queue.py", "_qsize", STD), lib("queue.py", "empty", STD)),
        (lib("subprocess.py", "_internal_poll", STD), lib("subprocess.py", "poll", STD)),
    ],
)
def test_who_only_asks_is_at_the_line_that_asks(inner: tuple[Frame, ...]) -> None:
    here = (user("while not os.path.exists(p): pass"), USER)
    assert trim_state_queries(inner + here) == here


def test_who_works_or_waits_is_where_it_is() -> None:
    json = (lib("json/decoder.py", "raw_decode", STD), USER)
    wait = (lib("threading.py", "wait", STD), USER)
    within = (lib("genericpath.py", "exists", STD), lib("torch/x.py", "load"), USER)
    assert [trim_state_queries(f) for f in (json, wait, within, ())] == [json, wait, within, ()]
