"""PyTorch's recorder is read in a living process, on every Python, and never in the program's way."""

from __future__ import annotations

import asyncio
import time

import pytest

from allaboard.facts import Recorded
from allaboard.sampling.flight_recorder_client import (
    ASK_INTERVAL_S,
    FlightRecorderClient,
    parse_answer,
)
from probed import LIMIT, RENDEZVOUS, Ended, Program, fake_torch

START = """
import os, pickle, sys, threading, time, types
native = types.ModuleType("torch._C._distributed_c10d")
sys.modules["torch._C._distributed_c10d"] = native
def entry(number, op="all_reduce", group="0", p2p=False):
    frames = [("redispatch", "/v/site-packages/torch/_ops.py", 882), ("forward", "<eval_with_key>.3", 13),
              ("call", "/tmp/torchinductor_u/ab/cab.py", 9), ("train", "/home/u/train.py", 41),
              ("<module>", "/home/u/train.py", 50)]
    return {"collective_seq_id": number, "record_id": number, "profiling_name": "gloo:" + op, "is_p2p": p2p,
            "process_group": (group, "default_pg"), "input_sizes": [[4]], "input_dtypes": ["Float"],
            "frames": [{"name": n, "filename": f, "line": l} for n, f, l in frames], "state": "scheduled"}
entries = [entry(n) for n in range(1, 101)] + [entry(7, "send", p2p=True), entry(3, "broadcast", "5")]
native._dump_fr_trace = lambda *asked: pickle.dumps({"pg_config": {}, "entries": entries})
import torch.distributed as dist
dist.init_process_group("gloo")
flight = sys.modules["_allaboard_probe.adapters._torch.flight_recorder"]
"""
LISTENS = START + "assert flight.listen() and flight.listen()\nprint('ready', flush=True)\n"
WAITS = LISTENS + "sys.stdin.readline()\nassert threading.active_count() == 1\n"


def started(program: Program, code: str) -> int:
    fake_torch(program.folder)
    program.environment = RENDEZVOUS
    process = program.start(code)
    assert process.stdout is not None and process.stdout.readline() == "ready\n", program.started
    return process.pid


def asked(
    program: Program, pid: int, recorders: FlightRecorderClient, now: float
) -> tuple[Recorded, ...]:
    return asyncio.run(recorders.read_record(program.box(pid), now))


def ended(program: Program) -> Ended:
    process = program.started[-1]
    out, err = process.communicate("go on\n", timeout=LIMIT)
    return Ended(process.pid, process.returncode, out, err)


def answered(program: Program, pid: int) -> tuple[Recorded, ...]:
    """Also on a machine that has no time for the answer at the first question."""
    until, now, recorders = time.monotonic() + LIMIT, 0.0, FlightRecorderClient()
    while time.monotonic() < until:
        now += ASK_INTERVAL_S
        if found := asked(program, pid, recorders, now):
            return found
    raise TimeoutError


def test_the_last_of_each_group_with_the_user_s_line(any_program: Program) -> None:
    pid = started(any_program, WAITS)
    found = answered(any_program, pid)
    assert [r.number for r in found if r.group == "0 default_pg"] == list(range(53, 101))
    (other,) = (r for r in found if r.group == "5 default_pg")
    assert (other.op, other.sizes, other.dtypes) == ("broadcast", ((4,),), ("Float",))
    assert [(f.file, f.line, f.function) for f in other.frames] == [
        ("/home/u/train.py", 41, "train")
    ]
    done = ended(any_program)
    assert (done.code, done.err) == (0, "")


BOTH = START + (
    "cuda = [dict(entry(n), profiling_name='nccl:all_gather') for n in (1, 2)]\n"
    "native._dump_nccl_trace = lambda *asked: pickle.dumps({'entries': cuda})\n"
    "assert flight.listen()\nprint('ready', flush=True)\nsys.stdin.readline()\n"
)


def test_the_numbers_of_two_recorders_are_kept_apart(program: Program) -> None:
    found = answered(program, started(program, BOTH))
    assert [(r.group, r.number, r.op) for r in found[-2:]] == [
        ("0 default_pg (NCCL)", 1, "all_gather"),
        ("0 default_pg (NCCL)", 2, "all_gather"),
    ]
    assert len(found) == 51


def test_it_is_asked_now_and_then(program: Program) -> None:
    pid = started(program, WAITS)
    assert answered(program, pid)
    recorders = FlightRecorderClient()
    asked(program, pid, recorders, 100.0)
    assert asked(program, pid, recorders, 100.0 + ASK_INTERVAL_S / 2) == ()


CLOSES = LISTENS + "os.closerange(3, 300)\nprint('closed', flush=True)\nsys.stdin.readline()\n"
FORKS = LISTENS + (
    "parent = os.getpid()\n"
    "child = os.fork()\n"
    "while not child and os.getppid() == parent:\n    time.sleep(0.05)\n"
    "if not child:\n    os._exit(0)\n"
    "print(child, flush=True)\nsys.stdin.readline()\n"
)
OTHER = START + (
    "native._dump_fr_trace = lambda *asked: b'of another version'\n"
    "assert flight.listen()\nprint('ready', flush=True)\nsys.stdin.readline()\n"
)


@pytest.mark.parametrize("code", [CLOSES, OTHER])
def test_where_it_cannot_answer_nothing_comes_and_nothing_breaks(
    program: Program, code: str
) -> None:
    pid = started(program, code)
    if code is CLOSES:
        stdout = program.started[-1].stdout
        assert stdout is not None and stdout.readline() == "closed\n"
    asked(
        program, pid, FlightRecorderClient(), 10.0
    )  # whoever stands in a read of a closed file comes back once
    assert asked(program, pid, FlightRecorderClient(), 10.0) == ()
    done = ended(program)
    assert (done.code, done.err) == (0, "")


def test_a_forked_child_leaves_the_parent_s_answers_to_the_parent(program: Program) -> None:
    pid = started(program, FORKS)
    assert answered(program, pid)


def test_where_there_is_no_recorder_nobody_listens(program: Program) -> None:
    fake_torch(program.folder)
    program.environment = RENDEZVOUS
    done = program.run(
        START + "del native._dump_fr_trace\nassert not flight.listen()\n"
        "assert not [n for n in os.listdir(os.environ['ALLABOARD_BOX']) if n.endswith('.ask')]\n"
    )
    assert (done.code, done.err) == (0, "")


def test_what_it_writes_for_us_is_no_io_of_its_own(program: Program) -> None:
    pid = started(program, WAITS)
    box, until = program.box(pid), time.monotonic() + LIMIT
    while not box.dumped_bytes and time.monotonic() < until:
        asyncio.run(FlightRecorderClient().read_record(box, 10.0))
    assert box.dumped_bytes > 5000 and not list(program.boxes.glob("*.recorded"))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[]", b'{"entries": 7}', b'{"entries": [7, {}, null]}']
)
def test_what_is_no_answer_is_read_as_none(data: bytes) -> None:
    assert parse_answer(data) == ()
