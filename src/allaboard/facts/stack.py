"""Python frames, and what several samples of one stack showed."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from allaboard.facts.bounds import Instant, Measure, Whole
from allaboard.late_pattern import compile_late

_PROBE = "/allaboard/probe/"
AUTOGRAPH = "/__autograph_generated_file"
"""In the path of what TensorFlow writes for a tf.function: the user never saw it, and it is gone soon."""
_COMPILED = ("<eval_with_key>", "torchinductor_")
"""In the path of what torch.compile writes: a graph's own name for its code, and the folder of its compiler.
"""

_INSTALLED = compile_late(
    r"/(?:site|dist)-packages/|/bin/(?:torchrun|accelerate|deepspeed|horovodrun|ray)$"
    r"|\.(?:egg|zip|whl|pex|par)/|/(?:_vendor|vendored|third_party|third-party)/"
    # Source trees of the frameworks, which are used without an installation.
    r"|/torch/distributed/|/tensorflow(?:_core)?/python/|/jax/_src/|/megatron/core/"
    r"|/vllm/(?:v1|engine|executor|worker|distributed|entrypoints|model_executor)/|/sglang/srt/"
    r"|/deepspeed/(?:runtime|launcher|comm|ops)/|/src/(?:accelerate|transformers|trl|peft)/"
    r"|/fairseq/fairseq(?:_cli)?/|/python/(?:mxnet|paddle|oneflow)/|/detectron2/(?:engine|utils|checkpoint)/|/mm(?:cv|engine)/(?:runner|parallel|dist)/"
    # A module that Cython compiled names its source as it was where it was built.
    r"|^(?!/)[\w./]+\.pyx$",
    re.IGNORECASE,
)
"""In the path of a library: installed, in an archive, or copied into a project."""
_STANDARD_LIBRARY = compile_late(
    r"/lib(?:64)?/python\d[^/]*/(?!site-packages/|dist-packages/)|^<frozen "
    r"|/(?:python\d[\d.]*|(?:ana|mini)conda\d?|miniforge\d?|mambaforge|envs/[^/]+|program files/[^/]+)"
    r"/lib/(?!(?:python[^/]*/)?(?:site|dist)-packages/)",
    re.IGNORECASE,
)
"""The path of Python's own code, on Linux, in conda and on Windows."""


class Frame(msgspec.Struct, frozen=True):
    """One Python frame."""

    file: str
    """Path of the source file."""
    line: Whole
    """Line number, from 1."""
    function: str
    """Name of the function."""
    text: str = ""
    """The source line; "" if it could not be read."""

    @property
    def is_user(self) -> bool:
        """True if it is the user's own code: neither standard library, nor installed, nor ours, nor written
        by TensorFlow or torch.compile."""
        # six, which TensorFlow used, keeps the function in a string in which it raises again.
        is_six = self.file == "<string>" and self.function in ("raise_from", "reraise")
        return not is_six and _own(self.file)

    @property
    def is_probe(self) -> bool:
        """True if it is a hook of ours around a framework's function."""
        return _PROBE in self.file.replace("\\", "/")

    @property
    def is_standard_library(self) -> bool:
        """True if it is Python's own code, or only raises again what another frame has raised."""
        path = self.file.replace("\\", "/")
        # six raises again what another frame has raised, and is no more than Python's own word for it.
        is_six = path.endswith("/six.py") and self.function == "reraise"
        return is_six or bool(_STANDARD_LIBRARY.search(path))

    @property
    def is_compiled(self) -> bool:
        """True if torch.compile has written the code."""
        return any(part in self.file for part in _COMPILED)

    def __str__(self) -> str:
        if AUTOGRAPH in self.file:
            return f"{self.function.removeprefix('tf__')}, as AutoGraph has rewritten it"
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.line} in {self.function}"


@lru_cache(maxsize=1024)
def _own(file: str) -> bool:
    path = file.replace("\\", "/")
    return not (
        file.startswith(("<frozen", "<__array_function__"))
        or _PROBE in path
        or AUTOGRAPH in path
        or any(p in path for p in _COMPILED)
        or _INSTALLED.search(path)
        or _STANDARD_LIBRARY.search(path)
    )


class EnclosingLoop(msgspec.Struct, frozen=True):
    """A loop of the user's own code that a frame of a stack is in."""

    head: Frame
    """Its first line, and the function that it is in."""
    last_line: Whole
    """The last line of its body."""
    branch_ends: tuple[Frame, ...] = ()
    """For the function that it is in, and each one of the user's own that has called that: the last line of
    the innermost branch (of ``if`` or ``match``, or behind a conditional ``return``) in which it is, or the
    call; none for a function without. Another process may have taken another branch."""


class Holds(msgspec.Struct, frozen=True):
    """One thread of a process that stands at a lock."""

    frame: Frame
    """Its place in the user's code."""
    wants: str = ""
    """The lock that it wants, in the words of the code; "" for none."""
    holds: tuple[str, ...] = ()
    """The locks that it holds."""
    held_at: Frame | None = None
    """Where it holds the lock that it wants, further out in its own stack; None if it does not."""
    interrupts: Frame | None = None
    """The function that Python has called by itself at ``held_at`` (a signal handler, ``__del__``); None if
    the line there calls what wants the lock."""


class Task(msgspec.Struct, frozen=True):
    """One thread as the kernel counts it, proc(5)."""

    name: str
    """Its name."""
    cpu: float
    """Its CPU time (s)."""
    sleeps: int
    """How often it went to sleep by itself (``voluntary_ctxt_switches``)."""
    state: str = "S"
    """Its state letter."""


class Grip(msgspec.Struct, frozen=True, kw_only=True):
    """A thread that keeps the interpreter to itself: at two samples it had the GIL, and others asked for
    it all the time."""

    thread: str
    """Its name."""
    frames: tuple[Frame, ...]
    """Its frames, innermost first."""
    span: Measure
    """Seconds between the two samples."""
    cpu: Measure
    """Cores that it used."""
    waiting: tuple[str, ...]
    """Threads that want to run."""
    wakes: Measure = 0.0
    """How often per second the fastest of these woke to ask for the GIL."""
    busy: bool = False
    """True if it ran or wanted a core at both samples."""
    main: bool = False
    """True if it is the main thread."""
    stops_main: bool = False
    """True if the main thread is among those that wait."""


ENDED_CHILD = "ended, and its exit code has not been read"
"""What stands for the command of a child that is a zombie."""


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """The main thread's frames, and what several samples of it showed."""

    frames: tuple[Frame, ...]
    """The frames, innermost first."""
    taken_at: float
    """When the last sample was taken (s)."""
    samples: int = 1
    """How many samples were taken."""
    span: float = 0.0
    """Seconds over which they were taken."""
    moving: bool = False
    """True if they differ in more than the line within one function, or than what is now here, now there."""
    stays: float = 0.0
    """Seconds for which the functions and the lines of the callers have been the same, whatever the
    innermost line."""
    by: str = "faulthandler"
    """How it was taken: faulthandler, py-spy."""
    children: tuple[tuple[int, str], ...] = ()
    """Processes that it waits for: pid and command."""
    stopped: tuple[tuple[int, float], ...] = ()
    """Processes below it that are stopped (SIGSTOP), with the seconds for which that has been seen."""
    threads: tuple[Holds, ...] = ()
    """Threads of a process that stands at a lock, the main one first; () if it stands at none."""
    blocked: str = ""
    """The system call from which no signal wakes it, and its file; "" for none."""
    grip: Grip | None = None
    """The thread that lets no other run; None for none."""
    other_thread_frames: tuple[Frame, ...] = ()
    """Where the program's other threads were at all samples, in its own code, while the main one waits
    for what one of them does."""
    fed_by: tuple[Frame, ...] = ()
    """Frames of the thread in which the framework runs the user's Python for its input (a generator)."""
    loaders: tuple[tuple[int, Frame], ...] = ()
    """Processes that load its data, or for whose end it waits: their pids, and where they are in the user's
    own code."""
    lone_waiters: tuple[int, ...] = ()
    """Those of them that have one thread, which waits for another one: they were forked, and nobody is left
    to wake them."""
    blocked_pool: int = 0
    """Threads of its pool of threads (concurrent.futures) if all of them and the main one wait for results
    that only they could work out, at the last samples; else 0."""
    flows: bool = False
    """True if that thread was not at one place at all samples."""
    loops: tuple[EnclosingLoop, ...] = ()
    """The loops of the user's own code that it is in, the innermost first."""
    awaited_pids: tuple[int, ...] = ()
    """Processes of its host that hold the other end of what it waits to read from, if that is one thing."""
    awaited_end: str = ""
    """What is at the other end of the one thing that it waits for, as "an answer from 10.0.0.5:443"; "" if
    that is not known, or was not the same at the last samples."""
    unread_child: int = 0
    """Pid of the child process that waits to write into a full pipe which only this process can read; 0 for
    none, and if it was not so at the last samples."""
    failed: tuple[tuple[int, int], ...] = ()
    """Processes of its program that failed and that their parent has not waited for: pid, and exit code or,
    below 0, the signal; () unless it waits where one of them may be what it waits for."""
    idle_pool: int = 0
    """Processes of its pool (multiprocessing) if it waits for a result while all of them wait for a task, at
    the last two samples of them; else 0."""
    rpc_functions: tuple[tuple[Frame, ...], ...] = ()
    """Frames of the threads in which PyTorch's RPC runs a function for another process, innermost first;
    those that were at one place at all samples."""
    moving_rpc_functions: int = 0
    """How many such functions were not at one place: they may be about to give an answer."""
    polling_cores: float = 0.0
    """Cores with which PyTorch's RPC polled between the samples, whatever else the process does."""
    asks: bool = False
    """True if it stands at a lock, and another thread of the program waits for the answer of another
    process."""

    @property
    def user(self) -> Frame | None:
        """The innermost frame of the user's own code, in a file if there is one: what a library makes by
        ``exec`` (the methods of a manager's proxy, of a dataclass) is nobody's line."""
        own_frames = [f for f in self.frames if f.is_user]
        return next(
            (f for f in own_frames if f.file != "<string>"), own_frames[0] if own_frames else None
        )

    @property
    def main_frame(self) -> Frame:
        """The frame to point at: the innermost one of the user's own code, else of all. Raises IndexError if
        there is no frame."""
        return self.user or self.frames[0]


class StackLook(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the stack of a member that trains."""

    taken_at: Instant
    """When it was taken."""
    frame: Frame | None
    """Innermost frame of the user's own code; None if there was none."""
    waits: bool
    """True if the member waited for others, or for a result that its device has yet to compute."""
