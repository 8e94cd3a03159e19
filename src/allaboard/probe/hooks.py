"""Functions of the frameworks wrapped so that the black box tells what the process is inside of.

Each has the signature and the result of what it wraps. Nothing in here raises into the user's code but the
gate's SystemExit, out of `joining`.
"""

from __future__ import annotations

import functools
import sys
import threading
import time

from . import member, text_records
from .layout import CHECKPOINT
from .member import here
from .signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .member import Declared


def waiting(
    name: str, call: Callable[..., Any], more: Callable[..., str] | None = None
) -> Callable[..., Any]:
    """Wrap ``call`` as `operation` does; the time in it counts as waiting for other members.

    ``more`` returns, from the call's arguments, what is shown after its name.
    """
    plain = name.encode()[:60]

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        box = here.box
        slot = box.slot() if box is not None else None
        if box is None or slot is None or slot.depth:
            return call(*args, **kwargs)
        label = plain
        if more is not None:
            try:
                detail = more(*args, **kwargs)
                if detail:
                    label = (name + detail).encode()[:60]
            except Exception as error:
                # Else the call itself says what is wrong with its arguments.
                reraise_from_handler(error)
        began_at = time.monotonic()
        try:
            slot.enter(label, 0, 0, began_at)
            return call(*args, **kwargs)
        finally:
            slot.leave(label)
            if slot.main:
                box.sync += time.monotonic() - began_at

    return inside


def aside(kind: int, call: Callable[..., Any], more: int = 1) -> Callable[..., Any]:
    """``call`` wrapped so that the box tells the main thread's time in it as that of a checkpoint or an
    evaluation: no steps are counted there, nor what it waits for. Same signature, same result. With 0
    ``more`` it counts as none: what was written is read."""

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        box = here.box
        if box is None or threading.get_ident() != box.ident or here.is_pausing:
            return call(*args, **kwargs)
        waited, less = (box.input, box.sync), more
        here.is_pausing = True
        box.begin_aside(kind, more)
        try:
            result = call(*args, **kwargs)
            less = 0
            if kind == CHECKPOINT and more and here.unsaved:
                _saved()
            return result
        except Exception as error:
            if kind == CHECKPOINT and more:
                _note_unsaved(error)
            raise
        finally:
            here.is_pausing = False
            box.end_aside(kind, less)
            # What was waited for in here belongs to no step.
            box.input, box.sync = waited

    return inside


NOT_SAVED = "not saved"
"""The note of checkpoints that could not be written: how many in a row, and the last error."""


def _note_unsaved(error: Exception) -> None:
    try:
        here.unsaved += 1
        error_text = text_records.one_line(type(error), error, None).rpartition(" at ")[0]
        here.note(
            NOT_SAVED,
            "%d %s at %s" % (here.unsaved, error_text, text_records.caller(sys._getframe(2))),
        )
    except Exception:
        pass  # the user's own error is what counts


def _saved() -> None:
    here.unsaved = 0
    here.notes.pop(NOT_SAVED, None)
    here.identify()


def fetching(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` wrapped so that the main thread's time in it is one of waiting for data."""

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        box = here.box
        if box is None:
            return call(*args, **kwargs)
        began_at = time.monotonic()
        try:
            return call(*args, **kwargs)
        finally:
            slot = box.slot()
            if slot is not None and slot.main:
                box.input += time.monotonic() - began_at

    return inside


def operation(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` wrapped so that the box shows the thread inside of it; same signature, same result."""
    label = name.encode()[:60]

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        box = here.box
        slot = box.slot() if box is not None else None
        if slot is None:
            return call(*args, **kwargs)
        try:
            slot.enter(label)
            return call(*args, **kwargs)
        finally:
            slot.leave(label)

    return inside


def joining(
    call: Callable[..., Any], declare: Callable[[tuple[Any, ...], dict[str, Any]], Declared | None]
) -> Callable[..., Any]:
    """An init function wrapped by the roll call; ``declare(args, kwargs)`` says what it was told."""

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        try:
            declared = declare(args, kwargs)
        except Exception as error:
            reraise_from_handler(error)
            # An argument that we do not understand is the framework's to judge.
            here.note("declare", repr(error))
            declared = None
        if declared is None:
            return call(*args, **kwargs)
        succeeded = False
        # Not inside the try: where it raises it has taken back its own count of nested inits, and
        # `joined` would take back a second one.
        member.arrive(declared)
        try:
            result = call(*args, **kwargs)
            succeeded = True
            return result
        finally:
            member.joined(succeeded)

    return inside
