"""Stacks as gdb prints them (`bt`, `thread apply all bt`), also with its commands for Python (`py-bt`).

The main thread is gdb's thread 1. Its frames of Python are read where gdb shows them; a native function with
which a framework or library waits for its peers stands for the call of Python that leads to it, since mostly
no frame of Python is there. The forms are those of gdb 7 to 15 and of CPython's python-gdb.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Frame, Glimpse, Stack, Testimony

MAX_FRAMES = 400
"""Frames of one thread that are read."""
MAX_FRAME_CHARS = 2000
"""Characters of a frame that are read: arguments of C++ are long."""
_THREAD = re.compile(
    r"^Thread (?P<number>\d{1,6}) \((?:Thread 0x[0-9a-f]{1,16} )?\(?LWP (?P<pid>\d{1,9})\)?[^\n]{0,80}:$"
)
_FRAME = re.compile(r"^#(?P<depth>\d{1,4}) {1,3}(?:0x[0-9a-f]{1,16} in )?(?P<rest>\S[^\n]*)$")
_SOURCE = re.compile(r" at (?P<file>[^\s:]{1,300}):(?P<line>\d{1,7})$")
_PYTHON_FRAME = re.compile(
    r"Frame 0x[0-9a-f]{1,16}, for file (?P<file>[^,\n]{1,300}), line (?P<line>\d{1,7}), in "
    r"(?P<name>[\w<>]{1,200})"
)
_PY_BT_HEAD = "Traceback (most recent call first):"
_PY_BT_FRAME = re.compile(
    r'^ {2}File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,7}), in (?P<name>[\w<>]{1,200})$'
)
_CRASH = re.compile(r"(?:terminated with|received) signal SIG(?!INT|STOP|TSTP|TRAP)")
"""A process that a signal has ended waits for nobody."""
_OPERATIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "bcast": "broadcast",
}
"""Names of collectives in native code, and PyTorch's for them; the others are called alike."""
_LIBRARIES = "/site-packages/"
_C10D = f"{_LIBRARIES}torch/distributed/distributed_c10d.py"
_NATIVE_CALLS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), file, function)
    for pattern, file, function in (
        # What is called; the file with the call of Python that leads there; its function, "": the operation.
        (r"\bncclCommInitRank\w*|\bncclCommInitAll|\bbootstrapInit\b", _C10D, "init_process_group"),
        (
            r"\bc10d::\w*Store::|\bc10d::detail::Tcp",
            f"{_LIBRARIES}torch/distributed/rendezvous.py",
            "_create_c10d_store",
        ),
        (
            r"\bc10d::ProcessGroup\w*::(?P<operation>allreduce|broadcast|barrier|allgather|reduce_scatter"
            r"|alltoall|send|recv|gather|scatter|reduce)",
            _C10D,
            "",
        ),
        (
            r"\bnccl(?P<operation>AllReduce|AllGather|ReduceScatter|Broadcast|Bcast|Reduce|Send|Recv)\b",
            _C10D,
            "",
        ),
        (r"\bgloo::(?P<operation>allreduce|allgather|barrier|broadcast|gather|scatter|reduce)\b", _C10D, ""),
        (
            r"\bc10d::(?:\w+::)?\w*Work\w*::(?:wait|synchronize)|\bncclGroupEnd\b"
            r"|\bgloo::transport::\w+::UnboundBuffer::wait",
            _C10D,
            "wait",
        ),
        (
            r"\bP?MPI_(?P<operation>Allreduce|Allgather|Barrier|Bcast|Alltoall|Reduce|Gather|Recv|Send)\w*\b"
            r"|\bhorovod::common::",
            f"{_LIBRARIES}horovod/torch/mpi_ops.py",
            "",
        ),
        (
            r"\bxla::DistributedRuntimeClient|\btsl::CoordinationServiceAgent",
            f"{_LIBRARIES}jax/_src/distributed.py",
            "initialize",
        ),
        (
            r"\btensorflow::Grpc(?:RemoteMaster|Session)::\w*(?:Create|Extend)|\bTF_ExtendGraph\b"
            r"|\btensorflow::GrpcRemoteMaster::CallWithRetry<tensorflow::(?:Create|Extend)SessionRequest",
            f"{_LIBRARIES}tensorflow/python/client/session.py",
            "_extend_graph",
        ),
        (
            r"\btensorflow::(?:Direct|Grpc|Master)Session::(?:Run|WaitForNotification)|\bTF_SessionRun\w*",
            f"{_LIBRARIES}tensorflow/python/client/session.py",
            "_call_tf_sessionrun",
        ),
        (
            r"\bTFE_(?:Py_)?Execute\b|\btensorflow::EagerExecute\b",
            f"{_LIBRARIES}tensorflow/python/eager/execute.py",
            "quick_execute",
        ),
    )
)  # fmt: skip


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    has_stack = "\n#0 " in text or text.startswith("#0 ") or _PY_BT_HEAD in text
    if not has_stack or _CRASH.search(text):
        return None
    lines = [line[:MAX_FRAME_CHARS].rstrip() for line in text.split("\n")]
    begin, pid, thread = _main_thread(lines)
    frames = _frames(thread)
    if not frames:
        return None
    glimpse = Glimpse(
        origin=exhibit.place_of_line(begin),
        rank=exhibit.rank,
        pid=pid or exhibit.pid,
        host=exhibit.host,
        stack=Stack(frames=frames, taken_at=0.0, by="gdb"),
    )
    return Testimony(glimpses=(glimpse,))


def _main_thread(lines: list[str]) -> tuple[int, int, list[str]]:
    """Return where the stack of gdb's thread 1 begins, its process, and its lines; the only stack if gdb
    names no threads."""
    heads = [(n, m) for n, line in enumerate(lines) if (m := _THREAD.match(line)) is not None]
    for place, (number, head) in enumerate(heads):
        if head["number"] == "1":
            end = heads[place + 1][0] if place + 1 < len(heads) else len(lines)
            return number, int(head["pid"]), lines[number + 1 : end]
    begins = (n for n, line in enumerate(lines) if line.startswith(("#0 ", _PY_BT_HEAD)))
    begin = next(begins, len(lines))
    return begin, 0, lines[begin:]


def _frames(lines: list[str]) -> tuple[Frame, ...]:
    """Return the frames of a thread, innermost first: where it waits for peers, then what Python shows."""
    natives = [m["rest"] for line in lines[:MAX_FRAMES] if (m := _FRAME.match(line)) is not None]
    python = tuple(_python_frames(lines))
    waiting = next((call for rest in natives if (call := _native_call(rest)) is not None), None)
    if waiting is not None:
        return (waiting, *python)
    return python or tuple(_native_frames(natives))


def _python_frames(lines: list[str]) -> Iterator[Frame]:
    """Yield the frames of Python; of `bt` and `py-bt` of one thread, those of the first that has any."""
    in_traceback = False
    has_frames = False
    for line in lines:
        if line == _PY_BT_HEAD:
            if has_frames:
                return
            in_traceback = True
            continue
        match = _PY_BT_FRAME.match(line) if in_traceback else None
        match = match or (_PYTHON_FRAME.search(line) if line.startswith("#") else None)
        if match is not None:
            has_frames = True
            yield Frame(match["file"], int(match["line"]), match["name"])


def _native_call(rest: str) -> Frame | None:
    """Return the call of Python that leads to this native function, if it is one that waits for peers."""
    # The arguments of C++ name types of everything.
    name = rest.partition(" (")[0]
    for pattern, file, function in _NATIVE_CALLS:
        match = pattern.search(name)
        if match is not None:
            operation = (match.groupdict().get("operation") or "wait").lower()
            return Frame(file, 0, function or _OPERATIONS.get(operation, operation))
    return None


def _native_frames(natives: list[str]) -> Iterator[Frame]:
    """Yield the frames whose source gdb knows, the C library's left out."""
    for rest in natives:
        source = _SOURCE.search(rest)
        if source is not None and "sysdeps/" not in source["file"]:
            yield Frame(source["file"], int(source["line"]), rest.partition(" (")[0].strip())


READER = LogReader(read=read_log)
