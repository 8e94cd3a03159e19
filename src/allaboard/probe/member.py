"""This process's part in the job: what the hooks call, and what they leave in the black box.

A worker that allaboard started has a box from the start. A child of it (DataLoader worker,
subprocess, a rank made by multiprocessing) lies dormant, without one, until it calls a distributed
init itself. Nothing in here raises into the user's code but the gate's SystemExit.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from . import (
    arrival_signal,
    device_memory,
    gate,
    import_record,
    leader_port,
    stackdump,
    text_records,
    tracker_runs,
)
from .blackbox import Box, mapped
from .event_fields import ProcessFields
from .layout import SUFFIX
from .signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    Declared = dict[str, Any]

STARTED, IMPORTING, IMPORTED, ARRIVED, JOINING, JOINED, TRAINING, LEAVING = range(1, 9)


class _Process(ProcessFields):
    """The state of this process; one instance, ``here``."""

    def __init__(self) -> None:
        self.box = None
        self.folder = os.environ.get("ALLABOARD_BOX", "")
        self.worker = int(os.environ.get("ALLABOARD_WORKER", "0"))
        self.gated = os.environ.get("ALLABOARD_GATE", "")
        self.round = 0
        self.recorded_exception: tuple[int, type] | None = None
        self.notes: dict[str, str] = {}
        self.unsaved = 0
        self.depth = 0
        self.places: set[str] = set()
        """Where this process has met others before."""
        self.raises = False
        self.is_pausing = False
        self.stepping: int | None = None
        """The thread that did the first step of this round."""
        self.thread_end_rank = 0
        """What the thread had done that is noted as ended by an exception: see `thread_raised`."""
        self.steps_told = False
        """A library above JAX tells which calls are steps: JAX's own hook need not guess."""
        self.memory_due = 0.0
        """When the memory on accelerators is read again (s)."""
        self.attach: Callable[[Declared], object] | None = None

    def wake(self) -> None:
        """Makes this process a member with a black box of its own, if it is not one yet."""
        if self.box is not None or not self.folder:
            return
        path = os.path.join(self.folder, "%d%s" % (os.getpid(), SUFFIX))
        if mapped(path):  # this is a sub-interpreter: the box is the main one's
            self.folder = ""
            return
        try:
            signum, fd = stackdump.register(self.folder)
            stackdump.report_crashes()
        except (OSError, ValueError, RuntimeError):
            signum, fd = 0, -1
        try:
            self.box = Box(path, signum, fd)
        except (OSError, ValueError):
            self.folder = ""  # no room or no right: the job goes on, seen from outside only
            return
        self.round = self.box.rounds
        self.identify()
        self.phase(STARTED)

    def sleep(self) -> None:
        """Cease to be a member; in a forked child, the parent's box stays the parent's."""
        self.box = None
        self.round = 0
        self.depth = 0
        self.places = set()

    def identify(self) -> None:
        """Writes who this is: script, Python, and what the hooks noted of the framework."""
        if self.box is not None:
            self.box.text("identity", text_records.identity(self.worker, dict(self.notes)))

    def phase(self, code: int) -> None:
        if self.box is not None:
            self.box.phase(code, self.round)

    def note(self, key: str, value: str) -> None:
        self.notes[key] = value
        self.identify()

    def lacks(self, module: str, name: str) -> None:
        """Note in the report what this version of a framework does not offer; training goes on
        without it."""
        self.note("hook " + module, "this version has no " + name)


here = _Process()


def become(worker: int) -> None:
    """A process that waited without a part in the job takes the place of this worker."""
    here.worker = worker
    here.wake()


def importing(name: str) -> None:
    if here.box is not None and here.box.phase_code < ARRIVED:
        here.box.text("detail", name)
        here.phase(IMPORTING)


def imported(name: str, trouble: str) -> None:
    module = sys.modules.get(name)
    if trouble:
        here.note("hook " + name, trouble)
    version = getattr(module, "__version__", None)
    if version is not None:
        here.note(name, str(version))
    if here.box is not None and here.box.phase_code == IMPORTING:
        here.phase(IMPORTED)


def arrive(declared: Declared) -> None:
    """Called on entry to a framework's init, with what the member told it. Returns when the
    member may go on; raises SystemExit(3) when the roll call has failed."""
    here.depth += 1
    if here.depth > 1:
        return
    if here.attach is not None and not here.folder:
        here.attach(declared)
    here.wake()
    if here.box is None:
        return
    try:
        here.round += 1
        here.notes.update(_versions())
        here.identify()
        rendezvous = str(declared.get("place", ""))
        # The number of the round goes with it: an agent may look between this text and the phase
        # below, and would else take the new address for that of the init before.
        declaration = dict(declared, round=here.round, again=rendezvous in here.places)
        here.places.add(rendezvous)
        here.box.text("declared", text_records.declared(declaration))
        here.box.text("detail", str(declared.get("call", "")))
        is_held = _waits_at_gate(declared)
    except Exception as error:
        reraise_from_handler(error)
        here.note("arrive", repr(error))
        return
    try:
        # From here on others see it here: what a signal handler of the program raises now is the program's.
        here.phase(ARRIVED)
        if is_held:
            # Else a later init waits for the agent's next look, which may be a second away.
            arrival_signal.ring_agent(here.folder)
            gate.wait(here.box, here.round, aloud=not here.raises)
        here.phase(JOINING)
        if is_held:
            leader_port.wait(declared)
    except BaseException:
        here.depth -= 1  # the program may catch it and try once more
        raise


def _versions() -> dict[str, str]:
    """Return the versions of what the program has imported so far, if they must be the same on
    every host."""
    versions = {"python": sys.version.split()[0]}
    for name in ("torch", "tensorflow", "jax", "jaxlib", "numpy", "google.protobuf", "keras"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            versions[name] = str(version)
    cuda = getattr(getattr(sys.modules.get("torch"), "version", None), "cuda", None)
    if cuda is not None:
        versions["cuda"] = str(cuda)
    return versions


def _waits_at_gate(declared: Declared) -> bool:
    """Return True if this member has to wait at the gate.

    "all": every member is ours; "local": they may be; "cluster": the agents of several hosts hold
    the roll call together.
    """
    if declared.get("world_size", 0) < 2 and here.gated != "all":
        return False
    if not declared.get("hold", True):
        return False
    return here.gated in ("all", "cluster") or (
        here.gated == "local" and bool(declared.get("local"))
    )


def joined(succeeded: bool) -> None:
    """Called on exit from a framework's init."""
    here.depth -= 1
    if here.depth == 0:
        here.phase(JOINED if succeeded else IMPORTED)


def step() -> None:
    """Called after each training step of the framework."""
    box = here.box
    if box is not None and not here.is_pausing:
        if box.phase_code != TRAINING and box.phase_code < LEAVING:
            box.phase(TRAINING, here.round)
            # The thread itself may hold the program's models; its number is hardly given twice.
            here.stepping = threading.get_native_id()
            _note_tracker_runs()
            import_record.here.write(here.folder, here.worker)
            box.input = box.sync = 0.0  # of before: the time of training begins here
        now = box.step()
        if now >= here.memory_due:
            read_memory(box, now)


def read_memory(box: Box, now: float) -> None:
    """Note the memory on accelerators, and when it is due again."""
    here.memory_due = now + device_memory.INTERVAL_S
    device_memory.record_memory(box.map)


def _note_tracker_runs() -> None:
    """Notes the runs of experiment trackers that the program has opened before its first step."""
    runs = tracker_runs.open_runs()
    if runs:
        here.notes.update(runs)
        here.identify()


def leaving() -> None:
    here.phase(LEAVING)


def raised(
    kind: type[BaseException], value: BaseException, traceback: TracebackType | None
) -> None:
    """Records the exception that ends the main thread, with the frame that raised it."""
    if here.box is None or threading.current_thread() is not threading.main_thread():
        return
    if here.recorded_exception == (id(value), kind):
        return  # at the interpreter's end, which may come much later: the first time is the true one
    told = (kind, value, traceback, time.monotonic())
    try:
        here.box.text("raised", text_records.exception(*told))
    # Out of a signal's handler: where a DataLoader has lost a worker, PyTorch's raises soon after the broken
    # connection did. The program has been left, so nothing hears of it.
    except Exception:
        here.box.text("raised", text_records.exception(*told))
    # Its id: the exception itself would keep alive what its frames hold.
    here.recorded_exception = (id(value), kind)


THREAD_ROLES = ("end", "nothing", "calls", "steps")
"""What a thread had a part in: nothing that is hooked, operations between members, the steps themselves; or
it was the interpreter's end that ended it."""


def _made_first_step(thread: threading.Thread | None) -> bool:
    """Return True if this thread made the first step of the round."""
    return thread is not None and None is not thread.native_id == here.stepping


def thread_raised(
    kind: type[BaseException],
    value: BaseException | None,
    traceback: TracebackType | None,
    thread: threading.Thread | None = None,
) -> None:
    """Notes the last exception that ended another thread than the main one, after which step, in which
    thread, and the last operation of that thread; the process goes on. What ended a thread that trained is
    not replaced by what ended one that did less."""
    if here.box is None or value is None or kind is SystemExit:
        return
    called = here.box.called()
    did = 3 if _made_first_step(thread) else 2 if called else 1
    did = 0 if here.box.phase_code >= LEAVING else did
    if did < here.thread_end_rank:
        return
    here.thread_end_rank = did
    here.notes["thread called"] = called
    name = thread.name if thread is not None else ""
    here.notes["thread ended"] = "%d %s %s" % (here.box.steps, THREAD_ROLES[did], name[:40])
    here.note("thread raised", text_records.one_line(kind, value, traceback))
