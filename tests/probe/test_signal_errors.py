"""What a signal handler raises inside a hook reaches the program, wherever it came: on the real
PyTorch, in a group of one, with the hot path in C and in Python."""

from __future__ import annotations

import functools
import importlib.util
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from allaboard.probe.signal_errors import reraise_from_handler
from probed import Program

CODE = """
import dis, json, signal, sys
import torch, torch.distributed as dist
import _allaboard_probe.member as m
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo", "tcp://127.0.0.1:0", rank=0, world_size=1)
HOME = m.__file__.rpartition("/")[0] + "/"

class Limit(Exception):
    pass

def handler(number, frame):
    raise Limit

signal.signal(signal.SIGALRM, handler)

def interrupted_at(turn, work):
    '''True if the work was interrupted there; None if handlers might run at fewer places of the probe in it:
    after each call, and where a function or a turn of a loop begins.'''
    left, before = [turn], {}
    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return each
    def each(frame, event, argument):
        if event == "opcode":
            last = before.get(frame, "")
            before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            left[0] -= last.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))
            if left[0] == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGALRM)
        return each
    sys.settrace(trace)
    try:
        work()
    except Limit:
        return True
    finally:
        sys.settrace(None)
    return False if left[0] <= 0 else None

tensor = torch.ones(4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.ones(8, 4)

def collective():
    dist.all_reduce(tensor)

def step():
    model(rows).sum().backward()
    optimizer.step()

def batches():
    list(DataLoader(TensorDataset(rows[:2])))

def evaluation():
    model.eval()
    with torch.no_grad():
        model(rows)
    model.train()

def is_left_inside():
    box = m.here.box
    slot = box.slot()
    return slot.depth != 0 or box.longs[slot.index + 3] != 0

told = {}
for work in (collective, step, batches, evaluation):
    at, turns, lost, stuck = 1, 0, 0, 0
    while True:
        work()
        work()  # until it takes the way of nearly every call
        seen = interrupted_at(at, work)
        if seen is None:
            break
        turns += 1
        lost += not seen
        stuck += is_left_inside()
        at += 1
    told[work.__name__] = [turns, lost, stuck]
print(json.dumps(told))
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="not on this machine: torch")
@pytest.mark.parametrize("pure", ["", "1"], ids=["C", "Python"])
def test_the_program_gets_it_whenever_it_comes(program: Program, pure: str) -> None:
    program.environment = {"ALLABOARD_PURE": pure}
    ended = program.run(CODE)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert min(turns for turns, _, _ in told.values()) > 3, told
    assert {name: lost for name, (_, lost, _) in told.items()} == dict.fromkeys(told, 0)
    # It would be seen in that operation for ever.
    assert {name: stuck for name, (_, _, stuck) in told.items()} == dict.fromkeys(told, 0)


ENDS = """
import signal
class Lost(Exception):
    told = 0
    def __str__(self):
        Lost.told += 1
        if Lost.told == 1:
            signal.raise_signal(signal.SIGCHLD)
        return "the worker's connection broke"
def handler(number, frame):
    raise RuntimeError("a worker was killed")
signal.signal(signal.SIGCHLD, handler)
raise Lost
"""


def test_the_exception_that_ends_it_is_recorded_although_a_signal_comes_meanwhile(
    program: Program,
) -> None:
    """So it is where a DataLoader loses a worker: first the connection breaks, then SIGCHLD comes."""
    ended = program.run(ENDS)
    raised = program.read(ended.pid).raised
    assert ended.code == 1 and raised is not None
    assert (raised.type, raised.message) == ("Lost", "the worker's connection broke")
    assert raised.frames[0].function == "<module>"


@contextmanager
def handled_by(handler: Callable[..., None]) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR2, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR2, before)


def fail(*_: object) -> None:
    raise TimeoutError


class Handler:
    def __call__(self, *_: object) -> None:
        raise TimeoutError

    def method(self, *_: object) -> None:
        raise TimeoutError


@pytest.mark.parametrize(
    "handler",
    [fail, Handler(), Handler().method, functools.partial(fail, 1), lambda *_: fail()],
    ids=["function", "object", "method", "partial", "calls another"],
)
def test_every_kind_of_handler_is_known(handler: Callable[..., None]) -> None:
    with handled_by(handler):
        try:
            signal.raise_signal(signal.SIGUSR2)
        except TimeoutError as error:
            with pytest.raises(TimeoutError) as raised:
                reraise_from_handler(error)
            assert raised.value is error
        else:
            pytest.fail("nothing was raised")


def test_an_error_of_the_hook_stays_in_it() -> None:
    with handled_by(Handler()):
        try:
            fail()
        except TimeoutError as error:
            reraise_from_handler(error)
