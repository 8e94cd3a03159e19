"""Wraps the collectives so that each call leaves its signature in the black box.

A call that cannot be described, raises, or overlaps one of another thread ends the proof of order for its
group: from there on nothing is concluded. Calls within calls (object collectives) count as the outermost.
"""

from __future__ import annotations

import functools
import math
import sys
from time import monotonic, thread_time

from .. import member
from ..calls import Calls, Group
from . import _torch_calls as table
from ._torch_loss import Losses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ..blackbox import Box

_LABEL = table.DDP.encode()


class Recorder:
    """The groups of this process; ``module`` is distributed_c10d."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.box: Box | None = None
        self.calls: Calls | None = None
        self.groups: dict[int, Group | None] = {}
        self.reducers: dict[int, tuple[Any, _Flat]] = {}
        self.pending: list[int] = []
        self.world: Group | None = None
        self.names: dict[int, tuple[object, str]] = {}
        self.spoiled = False

    def group(self, box: Box, pg: Any) -> Group | None:
        """The group of this process group; None for one that this rank is not in, or without room."""
        if box is not self.box:
            self.box, self.calls = box, Calls(box.map)
            self.groups.clear()
            self.world = None
        members = self.module._world.pg_group_ranks.get(pg)
        group = None
        if members is not None and self.calls is not None:
            ranks = sorted(members, key=members.get)
            own = members.get(self.module.get_rank(), 0)
            group = self.calls.group(str(pg.group_name), member.here.round, ranks, own)
            if group is not None and self.spoiled:
                group.unordered(1)
        self.groups[id(pg)] = group
        return group

    def _find(self, box: Box, pg: Any) -> Group | None:
        default = self.module._world.default_pg
        pg = default if pg is None else pg
        known = box is self.box and id(pg) in self.groups
        group = self.groups[id(pg)] if known else self.group(box, pg)
        if pg is default:
            self.world = group
        return group

    def note(
        self,
        box: Box,
        name: str,
        described: tuple[Any, Any, Any, Any, Any],
        frame: FrameType,
        now: float,
    ) -> Group | None:
        """Counts one call; returns its group, None where it has none."""
        pg, tensor, reduce, root, extra = described
        group = self.world if pg is None else self.groups.get(id(pg))
        if group is None or box is not self.box:
            group = self._find(box, pg)
            if group is None:
                return None
        calls = self.calls
        assert calls is not None
        code = frame.f_code
        if not calls.own.get(id(code)):
            frame = calls.caller(frame)
            code = frame.f_code
        if type(root) is tuple:  # a rank within the group
            root = group.ranks[root[0]]
        key: tuple[Any, ...]
        if tensor is None:
            key = (name, root, extra, id(code), frame.f_lasti)
        else:
            shape, op = tensor.shape, id(reduce)
            key = (
                name, tensor.dtype, shape, op, root, extra, id(code), frame.f_lasti,
            )  # fmt: skip
        found = calls.known.get(key)
        if found is None:
            found = self._learn(calls, key, name, (tensor, reduce, root, extra), frame)
        if group.busy:  # by another thread: calls of this one within a call are not counted
            group.unordered(group.number)
        group.call(found[0], found[1], found[2], now)
        return group

    def _learn(
        self, calls: Calls, key: tuple[Any, ...], name: str, call: tuple[Any, ...], frame: FrameType
    ) -> tuple[int, int, int]:
        tensor, reduce, root, extra = call
        needs = table.DESCRIBE[name][1] if name in table.DESCRIBE else table.DTYPE | table.ELEMENTS
        shape = tuple(int(n) for n in tensor.shape) if tensor is not None else ()
        dtype = str(tensor.dtype).replace("torch.", "") if tensor is not None else ""
        reduced = self._reduce(reduce) if needs & table.REDUCE else ""
        root = int(root) if needs & table.ROOT else -1
        elements = math.prod(shape)
        required = (
            dtype if needs & table.DTYPE else "",
            elements if needs & table.ELEMENTS else -1,
            reduced,
            root,
            extra,
        )
        return calls.signature(key, (name, reduced, dtype, shape, root), required, frame)

    def _reduce(self, op: object) -> str:
        """The reduce operation's name. Kept, so that no other object gets its id."""
        if op is None:
            return "sum"
        word = str(getattr(op, "op", op)).rpartition(".")[2].lower()
        word = "other" if " object at " in word else word
        self.names[id(op)] = (op, word)
        return word

    def spoil(self) -> None:
        """From here on the order of calls proves nothing, in any group."""
        self.spoiled = True
        for group in self.groups.values():
            if group is not None:
                group.unordered(group.number + 1)

    def gone(self) -> None:
        """After destroy_process_group: which groups there are is asked anew."""
        left = {id(pg) for pg in self.module._world.pg_map}
        self.pending.clear()
        self.world = None
        for one, (pg, _) in list(self.reducers.items()):
            if id(pg) not in left:
                del self.reducers[one]
        for key, group in list(self.groups.items()):
            if key not in left:
                del self.groups[key]
                if group is not None and self.calls is not None:
                    self.calls.free(group)


def recorded(recorder: Recorder, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The collective ``call`` wrapped; same signature, same result."""
    describe = table.DESCRIBE[name][0]
    label = name.encode()

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        slot = box.slot() if box is not None else None
        if box is None or slot is None or slot.depth:
            return call(*args, **kwargs)
        group = None
        now = monotonic()
        try:
            described = describe(*args, **kwargs)
            if described is not None:
                group = recorder.note(box, name, described, sys._getframe(1), now)
        except Exception:
            recorder.spoil()
        if group is None:
            slot.enter(label, 0, 0, now)
        else:
            slot.enter(label, group.index, group.number, now)
            group.busy = True
        try:
            return call(*args, **kwargs)
        except BaseException:
            if group is not None:
                group.unordered(group.number + 1)
            raise
        finally:
            if group is not None:
                group.busy = False
            slot.leave(label)
            if slot.main:
                box.sync += monotonic() - now

    return inside


class _Flat:
    """All parameters of a reducer as one tensor would show them."""

    def __init__(self, parameters: Any) -> None:
        parameters = list(parameters)
        self.shape = (sum(p.numel() for p in parameters),)
        self.dtype = parameters[0].dtype


def reducer(recorder: Recorder, cls: Any) -> None:
    """Hooks DDP's reducer: which group it reduces over, and that a backward of it is due."""
    create, prepare = cls.__init__, cls.prepare_for_backward

    @functools.wraps(create)
    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        create(self, params, *args, **kwargs)
        try:
            pg = kwargs.get("process_group") or args[2]
            recorder.reducers[id(self)] = (pg, _Flat(params))
        except Exception:
            recorder.reducers.pop(id(self), None)

    @functools.wraps(prepare)
    def prepare_for_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in recorder.pending:
            recorder.pending.append(id(self))
        return prepare(self, *args, **kwargs)

    cls.__init__ = __init__
    cls.prepare_for_backward = prepare_for_backward


def backward(recorder: Recorder, call: Callable[..., Any]) -> Callable[..., Any]:
    """The autograd engine's entry: the gradients of every reducer that is due go round in it."""
    losses = Losses()

    @functools.wraps(call)
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        box = member.here.box
        if box is not None:
            try:
                losses.saw(box, args[0])
            except Exception:
                pass
        if not recorder.pending:
            return call(*args, **kwargs)
        slot = box.slot() if box is not None else None
        if box is None or slot is None or slot.depth:
            recorder.pending.clear()
            return call(*args, **kwargs)
        group = None
        now = monotonic()
        try:
            due, recorder.pending[:] = list(recorder.pending), []
            for one in due:
                if one in recorder.reducers:
                    pg, flat = recorder.reducers[one]
                    group = recorder.note(
                        box, table.DDP, (pg, flat, None, -1, None), sys._getframe(1), now
                    )
        except Exception:
            recorder.spoil()
        if group is None:
            return call(*args, **kwargs)
        slot.enter(_LABEL, group.index, group.number, now)
        worked = thread_time()
        try:
            return call(*args, **kwargs)
        except BaseException:
            group.unordered(group.number + 1)
            raise
        finally:
            slot.leave(_LABEL)
            if slot.main:  # it computes in there too; who waits for gradients uses no CPU
                box.sync += max(0.0, monotonic() - now - (thread_time() - worked))

    return _engine_run_backward


def join(recorder: Recorder, cls: Any) -> None:
    """Under `Join` ranks that have run out of data shadow the calls of the others."""
    enter = cls.__enter__

    @functools.wraps(enter)
    def __enter__(self: Any) -> Any:
        recorder.spoil()
        return enter(self)

    cls.__enter__ = __enter__
