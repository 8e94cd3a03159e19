"""Stacks of gdb: where the main thread of a rank waits, with and without frames of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.instruments.gdb_backtrace import READER
from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Exhibit, Finding
from allaboard.rules.engine.catalogue import load_catalogue

HEAD = "(gdb) thread apply all bt\n\n"
OTHER_THREAD = """\
Thread 2 (Thread 0x7f0011223700 (LWP 4012) "pt_gloo_loop"):
#0  0x00007f0011000111 in epoll_wait (epfd=9, events=0x7f00) at ../sysdeps/unix/sysv/linux/epoll_wait.c:30
#1  0x00007f0011000222 in gloo::transport::tcp::Loop::run() () from /lib/t.so

"""
MAIN = 'Thread 1 (Thread 0x7f0055667740 (LWP {pid}) "python"):\n'
IN_ALL_REDUCE = """\
#0  0x00007f0011000333 in __futex_abstimed_wait_common64 (private=0) at ./nptl/futex-internal.c:57
#1  0x00007f0011000444 in gloo::transport::tcp::UnboundBuffer::waitRecv(int*) () from /lib/t.so
#2  0x00007f0011000555 in c10d::ProcessGroupGloo::AsyncWork::wait(long) () from /lib/t.so
#3  0x00007f0011000666 in pybind11::cpp_function::dispatcher(_object*) () from /lib/p.so
"""
READING = """\
#0  0x00007f0011000777 in __libc_read (fd=5, buf=0x7f00, nbytes=65536) at ../sysdeps/unix/sysv/linux/read.c:26
#1  0x0000000000567123 in _Py_read (fd=5, buf=0x7f00, count=65536) at ../Python/fileutils.c:1780
#2  0x0000000000567456 in _io_FileIO_readinto_impl (self=0x7f00) at ../Modules/_io/fileio.c:656
"""
OF_PYTHON = """\
#3  Frame 0x7f00aa, for file /work/shards.py, line 31, in read_shard (path='/data/7')
#7  Frame 0x7f00bb, for file /work/train.py, line 88, in main ()
"""
PY_BT = """\
(gdb) py-bt
Traceback (most recent call first):
  File "/work/shards.py", line 31, in read_shard
    return file.read(65536)
  File "/work/train.py", line 88, in main
    batch = read_shard(path)
"""


def frames_of(text: str) -> list[str]:
    testimony = READER.read(Exhibit(name="rank1.txt", data=text.encode(), rank=1))
    if testimony is None:
        return []
    (glimpse,) = testimony.glimpses
    assert glimpse.stack is not None and glimpse.stack.by == "gdb"
    return [str(frame) for frame in glimpse.stack.frames]


def diagnose(folder: Path, **texts: str) -> list[Finding]:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return list(diagnose_paths([folder], load_catalogue()).findings)


def stack(pid: int, frames: str) -> str:
    return HEAD + OTHER_THREAD + MAIN.format(pid=pid) + frames


@pytest.mark.parametrize("tail", [OF_PYTHON, PY_BT])
def test_frames_of_python_are_read(tail: str) -> None:
    assert frames_of(stack(4011, READING + tail)) == [
        "shards.py:31 in read_shard",
        "train.py:88 in main",
    ]


def test_a_stack_that_is_shown_twice_counts_once() -> None:
    assert len(frames_of(stack(4011, READING + OF_PYTHON + PY_BT))) == 2


def test_without_python_the_frames_with_a_source_remain() -> None:
    assert frames_of(stack(4011, READING))[0] == "fileutils.c:1780 in _Py_read"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("c10d::ProcessGroupNCCL::allreduce(std::vector<at::Tensor>&)", "all_reduce"),
        ("ncclAllGather (sendbuff=0x1, recvbuff=0x2)", "all_gather"),
        ("c10d::TCPStore::wait(std::vector<std::string> const&)", "_create_c10d_store"),
        ("ncclCommInitRankConfig (newcomm=0x1)", "init_process_group"),
        ("PMPI_Allreduce (sendbuf=0x1)", "all_reduce"),
        ("gloo::barrier(gloo::BarrierOptions&)", "barrier"),
    ],
)
def test_a_native_wait_for_peers_stands_for_the_call_that_leads_there(name: str, call: str) -> None:
    frames = frames_of(stack(4011, f"#0  0x00007f0011000333 in {name} () from /opt/lib.so\n"))
    assert frames == [next(f for f in frames if f.endswith(f" in {call}"))]


def test_the_rank_that_is_elsewhere_is_named(tmp_path: Path) -> None:
    findings = diagnose(
        tmp_path,
        rank0=stack(4011, IN_ALL_REDUCE),
        rank1=stack(4021, READING + OF_PYTHON),
        rank2=stack(4031, IN_ALL_REDUCE),
    )
    first = findings[0]
    assert [w.rank for w in first.who] == [1] and "shards.py:31" in first.summary


@pytest.mark.parametrize(
    "text",
    [
        "Thread 1 received signal SIGSEGV, Segmentation fault.\n#0  0x0 in crash () at a.c:1\n",
        "Program terminated with signal SIGABRT, Aborted.\n#0  0x00007f in raise () at raise.c:51\n",
        "#1 of the list is the first\nstep 10 loss 0.3\n",
        "a log\n#0 is a comment\n",
        "",
    ],
)
def test_what_is_no_stack_of_a_hang_is_left_alone(text: str) -> None:
    assert frames_of(text) == []
