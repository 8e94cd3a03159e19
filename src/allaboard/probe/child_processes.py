"""Exceptions of processes that multiprocessing makes: its own code catches and prints them, so that no
excepthook ever hears of one. And how members ended that this process started: the kernel tells their parent
alone, which then keeps it to itself.

Hooked and tried on Python 3.9 to 3.13 and torch 2.13: ``BaseProcess._bootstrap``, in which a child calls its
``run``, ``_wrap`` of `torch.multiprocessing.spawn`, which keeps exceptions for the parent, ``Popen.poll`` of
multiprocessing and ``Popen._handle_exitstatus`` of `subprocess`, behind which the return code is known.
"""

from __future__ import annotations

import functools
import os
import sys

from . import member
from .layout import ENDED, SUFFIX
from .signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FAILED = "process failed"
"""The note of the first process of multiprocessing that failed since the last one was started: its pid and
its exit code; "" once another one was started, or the program has read the exit code."""


def _process(module: Any) -> None:
    cls = module.BaseProcess
    bootstrap = cls._bootstrap

    @functools.wraps(bootstrap)
    def _bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            attributes = self.__dict__
            run_before = {k: attributes[k] for k in attributes if k == "run"}

            def restored() -> None:
                """Restore the process as it was, before the program's own code sees it: it may be
                pickled."""
                attributes.pop("run", None)
                attributes.update(run_before)

            self.run = _recording_exceptions(self.run, restored)
        except Exception:
            pass  # a class whose run cannot be set
        return bootstrap(self, *args, **kwargs)

    cls._bootstrap = _bootstrap
    start = cls.start

    @functools.wraps(start)
    def started(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if FAILED in member.here.notes:
                # It may take the place of the one that failed: the program has gone on.
                member.here.note(FAILED, "")
        except Exception as error:
            reraise_from_handler(error)
        return start(self, *args, **kwargs)

    cls.start = started
    exit_code = cls.exitcode

    def read_exit_code(self: Any) -> Any:
        code = exit_code.fget(self)
        try:
            if code and member.here.notes.get(FAILED, "").startswith("%d " % self.pid):
                # The program knows that it failed, and goes on all the same.
                member.here.note(FAILED, "")
        except Exception as error:
            reraise_from_handler(error)
        return code

    cls.exitcode = property(read_exit_code, doc=exit_code.__doc__)


def _spawn(module: Any) -> None:
    call = module._wrap

    @functools.wraps(call)
    def _wrap(fn: Any, *args: Any, **kwargs: Any) -> Any:
        return call(_recording_exceptions(fn), *args, **kwargs)

    module._wrap = _wrap


def _recording_exceptions(
    call: Callable[..., Any], call_before: Callable[[], None] | None = None
) -> Callable[..., Any]:
    """Return ``call`` with the same result; what it raises is recorded on its way up.

    ``call_before`` is called first.
    """

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        if call_before is not None:
            call_before()
        try:
            return call(*args, **kwargs)
        except Exception:
            _record()
            raise

    return run


def _record() -> None:
    """The exception that is being handled. In a frame of its own: one of those that it passed through would
    keep it alive, and with it all that they hold."""
    try:
        kind, value, traceback = sys.exc_info()
        if kind is not None and value is not None:
            member.raised(kind, value, traceback)
    except Exception:
        pass


def _popen(name: str) -> Callable[[Any], None]:
    """Hooks that method of a module's Popen."""

    def hook(module: Any) -> None:
        call = getattr(module.Popen, name)

        @functools.wraps(call)
        def waited(self: Any, *args: Any, **kwargs: Any) -> Any:
            known_code = self.returncode
            result = call(self, *args, **kwargs)
            if known_code is None and self.returncode is not None:
                try:
                    if name == "poll":
                        _note_killed(self.pid, self.returncode)
                        _note_failed(self.pid, self.returncode)
                    _write_exit(self.pid, self.returncode)
                except Exception as error:
                    reraise_from_handler(error)
            return result

        setattr(module.Popen, name, waited)

    return hook


KILL_SIGNALS = (4, 6, 7, 8, 9, 11)
"""Signals by which a process ends that nobody asked to (SIGKILL, and crashes): not those of `terminate`."""


def _note_killed(pid: int, code: int) -> None:
    """Notes that a process of multiprocessing was killed, and after which step of this one."""
    box = member.here.box
    if box is not None and -code in KILL_SIGNALS:
        member.here.note("process killed", "%d %d %d" % (pid, -code, box.steps))


def _note_failed(pid: int, code: int) -> None:
    """Notes the first process of multiprocessing that failed since the last one was started: nothing else
    tells of it, unless the program reads its exit code."""
    if member.here.box is not None and code > 0 and not member.here.notes.get(FAILED):
        member.here.note(FAILED, "%d %d" % (pid, code))


def _write_exit(pid: int, code: int) -> None:
    """Leaves beside the black box of a child that had one how it ended: its code, or the signal below 0."""
    stem = os.path.join(member.here.folder, "%d" % pid)
    if member.here.folder and os.path.exists(stem + SUFFIX):
        with open(stem + ENDED + "~", "w") as file:
            file.write("%d" % code)
        # Under its name only when it is whole: the agent may read it at any moment.
        os.replace(stem + ENDED + "~", stem + ENDED)


MODULES = {
    "multiprocessing.process": _process,
    "multiprocessing.popen_fork": _popen("poll"),
    "multiprocessing.popen_forkserver": _popen("poll"),
    "subprocess": _popen("_handle_exitstatus"),
    "torch.multiprocessing.spawn": _spawn,
}
