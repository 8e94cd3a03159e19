"""Wraps the collectives so that each call leaves its signature in the black box.

A call that cannot be described, raises, or overlaps one of another thread ends the proof of order for its
group: from there on nothing is concluded. Calls within calls (object collectives) count as the outermost.
"""

from __future__ import annotations

import functools
import math
import weakref
from _thread import get_ident
from sys import _getframe
from time import monotonic

from ... import layout, member
from ...collective_calls import Calls, Group
from ...event_hooks import COLLECTIVE, hook_in_c
from ...layout import CALLS, OP_LAST
from ...signal_errors import reraise_from_handler
from . import collective_signatures as table
from . import flight_recorder
from .backward_reach import UnknownGraphError, due, reaches
from .tensor_numbers import FOLLOWED
from .tensor_numbers import numbers as tensor_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from ...blackbox import Box
    from .backward_reach import Way
    from .work_wait import Waits

    Last = tuple[Any, ...]

NEVER: Last = (None,) * 10
"""What was called last from one place: its code, group, elements, dtype, reduce operation, root and what else
all ranks share; the box, the group's record, and the signature. Not the shape, which costs more to ask for:
of another one with as many elements the one before is shown."""


class Flat:
    """All parameters of a reducer as one tensor would show them."""

    def __init__(self, parameters: Any) -> None:
        parameters = list(parameters)
        self._elements: int = sum(p.numel() for p in parameters)
        self.shape = (self._elements,)
        self.dtype, self.device = parameters[0].dtype, parameters[0].device

    def numel(self) -> int:
        return self._elements


class Recorder:
    """The groups of this process; ``module`` is distributed_c10d."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.box: Box | None = None
        self.calls: Calls | None = None
        self.groups: dict[int, Group | None] = {}
        # Weak: a group that outlived the program's own would leave its sockets open, and its file:// behind.
        self.reducers: dict[int, tuple[weakref.ref[Any], Flat]] = {}
        self.living: dict[int, weakref.ref[Any]] = {}
        """The reducers by their id(), to be told when one is gone: no backward of it comes any more."""
        self.gone: list[int] = []
        """Those that are gone since: garbage is collected in the middle of anything."""
        self.owners: dict[int, int] = {}
        """The reducer of each parameter, both by id()."""
        self.pending: list[int] = []
        """Reducers whose models went forward, and whose backward has not come."""
        self.world: Group | None = None
        # None is an operation that the program leaves out: torch takes SUM then.
        self.names: dict[int, tuple[object, str]] = {id(None): (None, "sum")}
        self.spoiled = False
        self.waits: Waits | None = None
        self._recent: list[Any] = []
        self._ways: dict[int, Way] = {}
        """Of each reducer the way to one of its parameters in the last graph that was searched."""

    def remembered(self) -> dict[int, Last]:
        """Return, for one operation, what was called last from each place (f_lasti), until all is
        forgotten."""
        recent: dict[int, Last] = {}
        self.forget_with(recent)
        return recent

    def forget_with(self, remembering: Any) -> None:
        """Have this cleared, too, when calls are forgotten."""
        self._recent.append(remembering)

    def returned(self, result: object) -> None:
        """Look at what a call has returned."""
        try:
            if self.waits is not None and self.waits.off:
                self.waits.begun(result)
        except Exception as error:
            reraise_from_handler(error)

    def forget(self) -> None:
        """Forget what is known of calls; it is found anew."""
        for recent in self._recent:
            recent.clear()

    def group(self, box: Box, pg: Any) -> Group | None:
        """The group of this process group; None for one that this rank is not in, or without room."""
        if box is not self.box:
            # A forked child that became a member has its own box; what is known is the parent's.
            self.box, self.calls = box, Calls(box)
            self.forget()
            self.groups.clear()
            self.world = None
        members = self.module._world.pg_group_ranks.get(pg)
        group = None
        if members is not None and self.calls is not None:
            ranks = sorted(members, key=members.get)
            own_rank = members.get(self.module.get_rank(), 0)
            name = getattr(pg, "group_name", None) or self.module._world.pg_names[pg]
            group = self.calls.group(str(name), member.here.round, ranks, own_rank)
            if group is not None and self.spoiled:
                group.unordered(1)
            if "nccl" in str(getattr(self.module._world, "pg_backend_config", {}).get(pg)):
                flight_recorder.listen_or_not()  # its calls return before they are over
        self.groups[id(pg)] = group
        return group

    def _find(self, box: Box, pg: Any) -> Group | None:
        default = self.module._world.default_pg
        pg = default if pg is None else pg
        is_known = box is self.box and id(pg) in self.groups
        group = self.groups[id(pg)] if is_known else self.group(box, pg)
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
        recent: dict[int, Last] | None = None,
    ) -> Group | None:
        """Counts one call; returns its group, None where it has none. A call right from the user's own
        code is kept in ``recent``."""
        pg, tensor, reduce, root, extra = described
        group = self.world if pg is None else self.groups.get(id(pg))
        if group is None or box is not self.box:
            group = self._find(box, pg)
            if group is None:
                return None
        calls = self.calls
        assert calls is not None
        code = frame.f_code
        if not calls.is_own_code.get(id(code)):
            found_at = calls.caller(frame)
            recent = recent if found_at is frame else None
            frame, code = found_at, found_at.f_code
        root_or_none = root
        if type(root) is tuple:  # a rank within the group
            root = group.ranks[root[0]]
        key: tuple[Any, ...]
        if tensor is None:
            key = (name, root, extra, id(code), frame.f_lasti)
        else:
            op: int | str
            shape, op = tensor.shape, id(reduce)
            if op not in self.names:
                op = self._reduce(reduce)
            key = (
                name, tensor.dtype, shape, op, root, extra, id(code), frame.f_lasti,
            )  # fmt: skip
        numbers = calls.known_signatures.get(key)
        if numbers is None:
            numbers = self._learn(calls, key, name, (tensor, reduce, root, extra), frame)
            device = getattr(tensor, "device", None)
            if device is not None:
                group.on(device.type)
        slot = box.slot()
        if group.thread is not slot:
            group.handed(slot)
        elif group.trial:
            group.tried()
        if group.busy:  # by another thread: calls of this one within a call are not counted
            group.unordered(group.number)
        place_number = numbers[2]
        if tensor is not None and name in FOLLOWED:
            place_number += tensor_numbers.find(tensor)
        group.call(numbers[0], numbers[1], place_number, now)
        if recent is not None and tensor is not None:
            memo_key = (code, id(pg), tensor.numel(), tensor.dtype, reduce, root_or_none, extra)
            recent[frame.f_lasti] = (*memo_key, box, group, numbers)
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
        numbers = calls.signature(key, (name, reduced, dtype, shape, root), required, frame)
        if numbers[0] % layout.SIGNATURES == 0:  # it is to be written again where it comes again
            self.forget()
        return numbers

    def _reduce(self, op: object) -> str:
        """The reduce operation's name. Those that are the same for all calls are kept, so that no other
        object gets their id; another may be made for each call (PREMUL_SUM)."""
        cached = self.names.get(id(op))
        if cached is not None:
            return cached[1]
        name = str(getattr(op, "op", op)).rpartition(".")[2].lower()
        name = "other" if " object at " in name else name
        if type(op).__name__ == "RedOpType":
            self.names[id(op)] = (op, name)
        return name

    def due(self, roots: Any) -> list[int]:
        """The reducers whose turn comes in a backward from these roots, in the order of their making: in
        which order models went forward may differ between ranks."""
        pending = self.pending
        if self.gone:
            self.forget_gone()
        if len(pending) == 1 and not self.spoiled:
            way = self._ways.get(pending[0])
            if way is not None and reaches(roots[0], way, self.owners, pending[0]):
                return [pending.pop()]
        try:
            reached = (
                set(pending)
                if self.spoiled
                else due(roots, self.owners, pending, len(pending), self._ways)
            )
        except UnknownGraphError:
            if len(self.reducers) > 1:
                raise
            reached = set(pending)  # it is most likely the one model's
        pending[:] = [one for one in pending if one not in reached]
        return [one for one in self.reducers if one in reached]

    def add_reducer(self, reducer: Any, pg: Any, parameters: Any) -> None:
        """Know this reducer of these parameters over that group of processes."""
        self.forget_gone()  # one of them may have had this id()
        key, gone = id(reducer), self.gone
        self.living[key] = weakref.ref(reducer, lambda _: gone.append(key))
        self.reducers[key] = (weakref.ref(pg), Flat(parameters))
        self.owners.update((id(p), key) for p in parameters)

    def forget_gone(self) -> None:
        """Forget the reducers whose models are gone: their turn never comes."""
        while self.gone:
            reducer = self.gone.pop()
            self.living.pop(reducer, None)
            self.reducers.pop(reducer, None)
            self._ways.pop(reducer, None)
            if reducer in self.pending:
                self.pending.remove(reducer)
            for parameter in [p for p, owner in list(self.owners.items()) if owner == reducer]:
                del self.owners[parameter]

    def spoil(self) -> None:
        """Note that from here on the order of calls proves nothing, in any group."""
        self.spoiled = True
        for group in self.groups.values():
            if group is not None:
                group.unordered(group.number + 1)

    def refresh_groups(self) -> None:
        """Look up anew which groups there are, after destroy_process_group."""
        living = {id(pg) for pg in self.module._world.pg_map}
        self.pending.clear()
        self.forget()
        self.world = None
        for reducer, (of, _) in list(self.reducers.items()):
            if id(of()) not in living:
                del self.reducers[reducer]
        for key, group in list(self.groups.items()):
            if key not in living:
                del self.groups[key]
                if group is not None and self.calls is not None:
                    self.calls.free(group)


def recorded(
    recorder: Recorder,
    name: str,
    call: Callable[..., Any],
    describe: Callable[..., table.Described | None] | None = None,
) -> Callable[..., Any]:
    """The collective ``call`` wrapped; same signature, same result. ``describe`` where its arguments are not
    those of the operation ``name``.

    A step's caches hold the model, not us: here every object that is touched costs more than what is done
    with it. So the call that comes again from its place with its signature is told in this one function.
    """
    describe = describe or table.DESCRIBE[name][0]
    label = name.encode()
    is_followed, tensor_sizes = name in FOLLOWED, tensor_numbers.sizes
    recent: dict[int, Last] = recorder.remembered()
    here = member.here
    in_c: Any = None
    depth = 1

    @functools.wraps(call)
    def inside(*args: Any, **kwargs: Any) -> Any:
        box = here.box
        if box is None:
            return call(*args, **kwargs)
        slot = box.main_slot if get_ident() == box.ident else box.slot()
        if slot is None or slot.depth:
            return call(*args, **kwargs)
        group = None
        now = monotonic()
        longs, doubles, number = box.longs, box.doubles, 0
        try:
            described = describe(*args, **kwargs)
            if described is not None:
                pg, tensor, reduce, root, extra = described
                frame = _getframe(depth)
                code, one, elements, dtype, how, to, more, whose, group, signed = recent.get(
                    frame.f_lasti, NEVER
                )
                if (
                    code is frame.f_code
                    and whose is box
                    and one == id(pg)
                    and tensor is not None
                    and dtype is tensor.dtype
                    and elements == tensor.numel()
                    and how is reduce
                    and to == root
                    and more == extra
                    and not group.busy
                    and group.thread is slot
                    and not group.trial
                ):
                    group.number = number = group.number + 1
                    group.digest = digest = (group.digest * 1000003 + signed[1]) & 0xFFFFFFFF
                    place_number = signed[2]
                    if is_followed and elements in tensor_sizes:
                        place_number += tensor_numbers.find(tensor, elements)
                    group.path = path = (group.path * 1000003 + place_number) & 0xFFFFFFFF
                    ints = box.ints
                    at = group.ring_index + number % CALLS * 3
                    ints[at] = digest
                    ints[at + 1] = path
                    ints[at + 2] = signed[0]
                    at = group.call_index
                    longs[at] = number
                    doubles[at + 1] = now
                    longs[at + 2] = number
                else:
                    group = recorder.note(box, name, described, frame, now, recent)
                    at = frame.f_lasti
                    if in_c is not None and at in recent:
                        told = (args, kwargs, (tensor, pg, reduce), at, recent[at])
                        if in_c.remember(*told):
                            del recent[at]
                    number = group.number if group is not None else 0
                if group is not None:
                    group.busy = True
        # The call is missing in the order of a group, and it is not known in which.
        except Exception as error:
            if group is not None:
                group.busy = False
            group = None
            recorder.spoil()
            reraise_from_handler(error)
        at = slot.index
        try:
            slot.depth = 1
            slot.count = count = slot.count + 1
            longs[at] = count
            if slot.name is not label:
                slot.rename(label)
            doubles[at + 1] = now
            longs[at + 3] = 1 if group is None else 1 + group.index
            longs[at + 4] = number
            longs[at + OP_LAST] = count
            result = call(*args, **kwargs)
            if result is not None:
                recorder.returned(result)
            return result
        # It raised before or after it met the other ranks: they may count it or not.
        except BaseException:
            if group is not None:
                group.unordered(group.number + 1)
            raise
        finally:
            # These first, before any call, after which a signal's handler might run.
            slot.depth = 0
            longs[at + 3] = 0
            if group is not None:
                group.busy = False
            lasted = monotonic() - now
            slot.spent = spent = slot.spent + lasted
            doubles[at + 2] = spent
            if slot.main:
                box.sync += lasted

    sizes = tensor_sizes if is_followed else None
    told = (call, inside, label, sizes, tensor_numbers.find, recorder.returned)
    in_c = hook_in_c(COLLECTIVE, *told)
    if in_c is None:
        return inside
    depth = 2
    recorder.forget_with(in_c)
    collective = in_c.collective

    @functools.wraps(call)
    def outside(*args: Any, **kwargs: Any) -> Any:
        return collective(args, kwargs)

    return outside
