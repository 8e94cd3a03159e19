"""Python frames, and what several looks at one stack showed."""

from __future__ import annotations

from functools import lru_cache

import msgspec

_PROBE = "/allaboard/probe/"
AUTOGRAPH = "/__autograph_generated_file"
"""In the path of what TensorFlow writes for a tf.function: the user never saw it, and it is gone soon."""
_COMPILED = ("<eval_with_key>", "torchinductor_")
"""The same of torch.compile: a graph's own name for its code, and the folder of what its compiler writes."""


class Frame(msgspec.Struct, frozen=True):
    """One Python frame; ``text`` is its source line where it could be read."""

    file: str
    line: int
    function: str
    text: str = ""

    @property
    def is_user(self) -> bool:
        """Whether it is the user's own code: neither standard library, nor installed, nor ours,
        nor written by TensorFlow or torch.compile."""
        return _own(self.file)

    @property
    def is_compiled(self) -> bool:
        """Whether it is code that torch.compile has written."""
        return any(part in self.file for part in _COMPILED)

    def __str__(self) -> str:
        if AUTOGRAPH in self.file:
            return f"{self.function.removeprefix('tf__')}, as AutoGraph has rewritten it"
        return f"{self.file.rpartition('/')[2]}:{self.line} in {self.function}"


@lru_cache(maxsize=1024)
def _own(file: str) -> bool:
    foreign = (
        "/site-packages/",
        "/dist-packages/",
        "/lib/python3",
        "/lib64/python3",
        *("/bin/torchrun", "/bin/accelerate", "/bin/deepspeed"),
        _PROBE,
        AUTOGRAPH,
        *_COMPILED,
    )
    return not file.startswith("<frozen") and not any(p in file for p in foreign)


class Holds(msgspec.Struct, frozen=True):
    """One thread of a process that stands at a lock: ``at`` its place in the user's code, the lock that it
    ``wants`` ("" for none) and those that it ``holds``, in the words of the code."""

    at: Frame
    wants: str = ""
    holds: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True):
    """One thread as the kernel counts it, proc(5): its ``name``, its CPU time (s), how often it went to
    sleep by itself (``voluntary_ctxt_switches``), and its state letter."""

    name: str
    cpu: float
    sleeps: int
    state: str = "S"


class Grip(msgspec.Struct, frozen=True, kw_only=True):
    """A thread that keeps the interpreter to itself: at two looks, ``span`` s apart, it had the GIL, and
    somebody asked for it all the time. ``thread`` is its name, ``main`` if it is the main one; ``frames``
    are innermost first, ``cpu`` is in cores, ``busy`` where it ran or wanted a core both times; ``waiting``
    are the threads that want to run, the fastest of which woke ``wakes`` times a second to ask for it;
    ``stops_main``: the main one is among them."""

    thread: str
    frames: tuple[Frame, ...]
    span: float
    cpu: float
    waiting: tuple[str, ...]
    wakes: float = 0.0
    busy: bool = False
    main: bool = False
    stops_main: bool = False


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """The main thread's frames, innermost first, and what several looks at it showed.

    ``samples`` looks over ``span`` seconds; ``moving`` when they differ in more than the line within one
    function, or that is now here, now there; ``stays``: seconds for which the functions and the lines of
    the callers have been the same, whatever the innermost line; ``by`` names how it was taken
    (faulthandler, py-spy). ``children`` are the processes that it waits for, ``stopped`` those of all below
    it that are stopped (SIGSTOP), with the seconds for which that has been seen; ``blocked`` the system
    call from which no signal wakes it, and its file; ``threads`` are known where it stands at a lock, the
    main one first; ``others`` where the program's other threads have been at all looks, in its own code,
    while the main one waits for what one of them does; ``grip`` where one of its threads lets no other run.
    ``fed_by`` is the thread in which the framework runs the user's Python for its input (a generator),
    ``flows`` where that was not at one place at all looks. ``asks`` where it stands at a lock, and another
    thread of the program waits for the answer of another process.
    """

    frames: tuple[Frame, ...]
    taken_at: float
    samples: int = 1
    span: float = 0.0
    moving: bool = False
    stays: float = 0.0
    by: str = "faulthandler"
    children: tuple[tuple[int, str], ...] = ()
    stopped: tuple[tuple[int, float], ...] = ()
    threads: tuple[Holds, ...] = ()
    blocked: str = ""
    grip: Grip | None = None
    others: tuple[Frame, ...] = ()
    fed_by: tuple[Frame, ...] = ()
    flows: bool = False
    asks: bool = False

    @property
    def user(self) -> Frame | None:
        """The innermost frame of the user's own code, in a file where there is one: what a library makes by
        ``exec`` (the methods of a manager's proxy, of a dataclass) is nobody's line."""
        own = [f for f in self.frames if f.is_user]
        return next((f for f in own if f.file != "<string>"), own[0] if own else None)

    @property
    def place(self) -> Frame:
        """Where to point at: the innermost frame of the user's own code, else of all. Raises IndexError where
        there is no frame."""
        return self.user or self.frames[0]
