"""DDP's gradients: its reducer runs in C++, and the backward in which its collectives go round.

What is seen of them is which group a reducer is over, that a backward of it is due, and the engine's entry;
also the value that backward begins from, and that ranks under `Join` shadow each other's calls.
"""

from __future__ import annotations

import functools
from sys import _getframe
from time import monotonic, thread_time

from ... import member
from ...signal_errors import reraise_from_handler
from .._loss_values import Losses
from . import collective_signatures as table
from .parameter_hash import replicas
from .phases import trains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .collectives import Recorder

_LABEL = table.DDP.encode()


def reducer(recorder: Recorder, cls: Any) -> None:
    """Hooks DDP's reducer: which group it reduces over, and that a backward of it is due."""
    create, prepare = cls.__init__, cls.prepare_for_backward

    @functools.wraps(create)
    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        create(self, params, *args, **kwargs)
        try:
            pg = kwargs.get("process_group") or args[2]
            recorder.add_reducer(self, pg, params)
            if pg.size() == recorder.module.get_world_size():
                replicas.add(params)
        except Exception as error:
            recorder.reducers.pop(id(self), None)
            reraise_from_handler(error)

    @functools.wraps(prepare)
    def prepare_for_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in recorder.pending:
            recorder.pending.append(id(self))
        return prepare(self, *args, **kwargs)

    cls.__init__ = __init__
    cls.prepare_for_backward = prepare_for_backward


def _elsewhere(recorder: Recorder, inputs: tuple[Any, ...]) -> bool:
    """Return True if gradients are asked for (backward's ``inputs``), but for none of a model's
    parameters."""
    return not any(id(one) in recorder.owners for one in inputs)


def backward(recorder: Recorder, call: Callable[..., Any]) -> Callable[..., Any]:
    """The autograd engine's entry: the gradients of every reducer that is due go round in it."""
    losses, here, pending = Losses(), member.here, recorder.pending

    @functools.wraps(call)
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        box = here.box
        if box is not None:
            try:
                root = args[0][0]
                # Not a subclass: what a distributed tensor answers may be a collective of its own.
                if type(root) is losses.simple and root.is_cpu:
                    value = root.item()
                    # Backward may begin from a complex number.
                    if type(value) is float and value - value == 0.0:
                        box.loss = value
                    else:
                        losses.record_value(box, value)
                else:
                    losses.look(box, root)
                if here.is_pausing:
                    trains()
            except Exception as error:
                reraise_from_handler(error)
                # item() raises for several numbers: from now on `look` asks for the count first.
                losses.ask_shapes()
        # autograd.grad: no gradient comes to a parameter, and no reducer to its turn.
        if not pending or kwargs.get("accumulate_grad") is False:
            return call(*args, **kwargs)
        if len(args) > 4 and args[4] and _elsewhere(recorder, args[4]):
            return call(*args, **kwargs)
        slot = box.slot() if box is not None else None
        if box is None or slot is None or slot.depth:
            pending.clear()
            return call(*args, **kwargs)
        group = None
        now = monotonic()
        try:
            for reducer in recorder.due(args[0]):
                of, flat = recorder.reducers.get(reducer, (None, None))
                pg = of() if of is not None else None
                if pg is not None:
                    group = recorder.note(
                        box, table.DDP, (pg, flat, None, -1, None), _getframe(1), now
                    )
        except Exception as error:
            recorder.spoil()
            reraise_from_handler(error)
        if group is None:
            return call(*args, **kwargs)
        worked = thread_time()
        try:
            slot.enter(_LABEL, group.index, group.number, now)
            return call(*args, **kwargs)
        except BaseException:
            group.unordered(group.number + 1)
            raise
        finally:
            slot.leave(_LABEL)
            if slot.main:  # it computes in there too; who waits for gradients uses no CPU
                box.sync += max(0.0, monotonic() - now - (thread_time() - worked))

    return _engine_run_backward


SHADOWS = "shadows its peers"
"""The note of a rank that has run out of data under `Join`: what its steps take tells nothing of itself."""
BRIEF = 1.0
"""Seconds in which ranks end about together."""


def join(recorder: Recorder, cls: Any) -> None:
    """Under `Join` ranks that have run out of data shadow the calls of the others, in its end."""
    enter, leave = cls.__enter__, cls.__exit__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        recorder.spoil()
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self: Any, kind: Any, value: Any, traceback: Any) -> Any:
        if kind is not None or SHADOWS in member.here.notes:
            return leave(self, kind, value, traceback)
        began_at = monotonic()
        member.here.note(SHADOWS, "1")
        try:
            return leave(self, kind, value, traceback)
        finally:
            if monotonic() - began_at < BRIEF:
                member.here.notes.pop(SHADOWS, None)
                member.here.identify()

    cls.__enter__ = __enter__
    cls.__exit__ = __exit__
