"""Starts the probe: once per interpreter, a few milliseconds, and silent when anything fails."""

from __future__ import annotations

import atexit
import importlib
import os
import sys

from . import child_processes, import_record, member
from .event_fields import REASON
from .import_hooks import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType, TracebackType
    from typing import Any


def start(attach: Callable[[dict[str, Any]], object] | None = None) -> None:
    """Hooks this interpreter if it belongs to a job (ALLABOARD_BOX is set), or may come to: then
    ``attach`` is called with what it declares, before it arrives. Else does nothing."""
    if not os.environ.get("ALLABOARD_BOX") and attach is None:
        return
    member.here.attach = attach
    member.here.notes["events"] = "in Python: %s" % REASON if REASON else "in C"
    record = import_record.here
    adapters: dict[str, ModuleType] = {}

    def load(name: str) -> dict[str, Callable[[Any], None]]:
        """Loads an adapter once the program asks for one of its packages: most interpreters never do."""
        adapters[name] = importlib.import_module("%s.adapters.%s" % (__package__, name))
        hooks: dict[str, Callable[[Any], None]] = adapters[name].MODULES
        return hooks

    def importing(name: str) -> None:
        record.before_framework()
        call_before = getattr(adapters.get(name), "before_import", None)
        if call_before is not None:
            call_before()
        member.importing(name)

    def imported(name: str, trouble: str) -> None:
        record.after_framework()
        member.imported(name, trouble)

    watch = Watch(_packages(), dict(child_processes.MODULES), importing, imported, load)
    sys.meta_path.insert(0, watch)
    # A forked child has the parent's box mapped, and would write over what the parent tells.
    os.register_at_fork(after_in_child=member.here.sleep)
    # Children inherit the variables, not the pid: only a worker itself is a member at once.
    if os.environ.get("ALLABOARD_PID") == str(os.getpid()):
        member.here.wake()
        record.begin()
    _line_buffered()
    _watch_end(adapters)


def _packages() -> dict[str, str]:
    """Every package that an adapter hooks, and the name of that adapter: a file of ``frameworks`` each."""
    files = os.listdir(os.path.join(os.path.dirname(__file__), "frameworks"))
    names = sorted(f[:-3] for f in files if f.endswith(".py") and not f.startswith("_"))
    modules = {n: importlib.import_module("%s.frameworks.%s" % (__package__, n)) for n in names}
    return {package: n for n, module in modules.items() for package in module.PACKAGES}


def _line_buffered() -> None:
    """Output to our pipe is buffered by the line, as on a terminal, so that logs come at once."""
    try:
        # Which pipe it is, not only that it is one: a child may have been given another output.
        pipe = "%d" % os.fstat(1).st_ino
    except OSError:  # started without a standard output
        return
    if os.environ.get("ALLABOARD_STDOUT") == pipe:
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)


def _watch_end(adapters: dict[str, ModuleType]) -> None:
    """Records an exception at the top, and the beginning of the interpreter's end; ``at_end`` of those
    adapters that are loaded by then is called, when nothing of the program is left to run but its
    destructors."""
    previous_hook = sys.excepthook

    def excepthook(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        try:
            if _unwound(sys._getframe()):
                member.raised(kind, value, traceback)
        except Exception:
            pass
        previous_hook(kind, value, traceback)

    sys.excepthook = excepthook
    _watch_threads()
    # atexit goes backwards: registered at the interpreter's start, this comes after all that the
    # program registers.
    atexit.register(_end, adapters)


def _unwound(frame: FrameType | None) -> bool:
    """Return True if the program has been left. One that calls ``sys.excepthook`` itself, to show
    what it has caught (as code.interact() does), goes on."""
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            return False
        frame = frame.f_back
    return True


def _watch_threads() -> None:
    """Records the exception that ends a thread: who waits for what it made, waits for ever."""
    import threading

    previous_hook = threading.excepthook

    def excepthook(args: threading.ExceptHookArgs) -> None:
        try:
            member.thread_raised(args.exc_type, args.exc_value, args.exc_traceback, args.thread)
        except Exception:
            pass
        previous_hook(args)

    threading.excepthook = excepthook


def _end(adapters: dict[str, ModuleType]) -> None:
    # A program that replaced sys.excepthook still leaves the exception here.
    value = getattr(sys, "last_value", None)
    if value is not None and member.here.box is not None:
        try:
            member.raised(type(value), value, value.__traceback__)
        except Exception:
            pass
    member.leaving()
    if member.here.box is not None:
        for adapter in adapters.values():
            try:
                if hasattr(adapter, "at_end"):
                    adapter.at_end()
            except Exception:
                pass  # it would be printed as if the program's own end had failed
