"""Which parameter, gradient or buffer of a module a collective is called with: a number, equal on all ranks.

PyTorch tells of every parameter, buffer and module that is registered with a module (since 2.0). From that
follows each tensor's path ("Net.body.2.weight"), and its number is the hash of the path. A collective's
argument is found by its address, so that ``p.grad.data`` is found as well as ``p``; among the tensors of one
size only, which are looked through again where gradients have moved. What is match is checked against the
tensor as it is now: an address may be another tensor's by then. Nothing is kept alive.
"""

from __future__ import annotations

import weakref
from zlib import crc32

from ... import layout, member
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLLOWED = ("all_reduce", "reduce", "broadcast")
"""Operations in which all ranks must pass the same tensor; to a gather each may pass its own."""
MAX_TENSORS = 50_000
"""Tensors that are entry."""
MAX_MISSES = 8
"""Searches without a result, one after another, after which a size is given up."""
CREDIT_PER_CALL = 4
"""Tensors of a search that each call pays for."""
MAX_DEPTH = 64
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "OptimizedModule")
"""A path begins below them: it is the same before a model is wrapped and after."""


class _Tensor:
    """One registered tensor."""

    __slots__ = ("elements", "is_parameter", "module", "name", "number", "tensor")

    def __init__(
        self,
        tensor: weakref.ref[Any],
        elements: int,
        module: weakref.ref[Any],
        name: str,
        is_parameter: bool,
    ) -> None:
        self.tensor = tensor
        self.elements = elements
        self.module = module
        self.name = name
        self.is_parameter = is_parameter
        self.number = 0

    def is_at(self, pointer: int) -> bool:
        """Return True if the tensor is at this address now."""
        tensor = self.tensor()
        return tensor is not None and bool(tensor.data_ptr() == pointer)

    def has_gradient_at(self, pointer: int) -> bool:
        """Return True if the tensor's gradient is at this address now."""
        tensor = self.tensor()
        gradient = tensor.grad if tensor is not None else None
        return gradient is not None and bool(gradient.data_ptr() == pointer)


class _OfSize:
    """The tensors with one number of elements."""

    __slots__ = ("credit", "gradients", "misses", "own_tensors", "tensors")

    def __init__(self) -> None:
        self.tensors: dict[int, _Tensor] = {}
        # By address, as they were when they were last searched for.
        self.own_tensors: dict[int, _Tensor] = {}
        self.gradients: dict[int, _Tensor] = {}
        self.misses = 0
        # A search may look at this many tensors. Each call adds a few, so that in the mean a call costs no
        # more than these, however many tensors there are; what is not searched for is not entry.
        self.credit = 0


class TensorNumbers:
    """The registered tensors of this process."""

    def __init__(self) -> None:
        self.sizes: dict[int, _OfSize] = {}
        """By the number of elements."""
        self._given_up: set[int] = set()
        self._by_id: dict[int, _Tensor] = {}
        self._parents: dict[int, tuple[weakref.ref[Any], weakref.ref[Any], str]] = {}

    def add_parameter(self, module: Any, name: str, tensor: Any) -> None:
        """PyTorch's hook for a parameter that is registered. Returns None: nothing is changed."""
        self._add(module, name, tensor, True)

    def add_buffer(self, module: Any, name: str, tensor: Any) -> None:
        """PyTorch's hook for a buffer; some modules set a new one in every step."""
        self._add(module, name, tensor, False)

    def _add(self, module: Any, name: str, tensor: Any, is_parameter: bool) -> None:
        try:
            if tensor is None or member.here.box is None or len(self._by_id) >= MAX_TENSORS:
                return
            key, elements = id(tensor), tensor.numel()
            if elements in self._given_up:
                return
            entry = _Tensor(
                weakref.ref(tensor, lambda of: self._forget(key, of)),
                elements,
                weakref.ref(module),
                str(name),
                is_parameter,
            )
            self._by_id[key] = entry
            of_size = self.sizes.setdefault(elements, _OfSize())
            of_size.tensors[key] = entry
            of_size.credit += 1
        except Exception as error:
            reraise_from_handler(error)  # else a parameter without a shape yet

    def _forget(self, key: int, of: object) -> None:
        entry = self._by_id.get(key)
        # Another may have got this id meanwhile.
        if entry is not None and entry.tensor is of:
            del self._by_id[key]
            of_size = self.sizes.get(entry.elements)
            if of_size is not None:
                of_size.tensors.pop(key, None)

    def add_module(self, parent: Any, name: str, child: Any) -> None:
        """PyTorch's hook for a module that is registered with another one."""
        try:
            if child is None or member.here.box is None or len(self._parents) >= MAX_TENSORS:
                return
            link = self._parents.get(id(child))
            if link is None or link[0]() is not child:
                self._parents[id(child)] = weakref.ref(child), weakref.ref(parent), str(name)
        except Exception as error:
            reraise_from_handler(error)

    def find(self, tensor: Any, elements: int = -1) -> int:
        """The number of this tensor; 0 for one that belongs to no module. ``elements``: how many it has, -1
        to ask it."""
        try:
            if elements < 0:
                elements = tensor.numel()
            of_size = self.sizes.get(elements)
            if of_size is None:
                return 0
            pointer = tensor.data_ptr()
            of_size.credit += CREDIT_PER_CALL
            entry = of_size.gradients.get(pointer)
            if entry is None or not entry.has_gradient_at(pointer):
                entry = of_size.own_tensors.get(pointer)
                if entry is not None and not entry.is_at(pointer):
                    entry = None
            if entry is not None:
                of_size.misses = 0
                return entry.number or self._give_number(entry)
            if of_size.credit < len(of_size.tensors):
                return 0
            return self._search(of_size, pointer, elements)
        # Some kinds of tensors have no address.
        except Exception as error:
            reraise_from_handler(error)
            return 0

    def _search(self, of_size: _OfSize, pointer: int, elements: int) -> int:
        of_size.credit = 0
        gradients: dict[int, _Tensor] = {}
        candidates = list(of_size.tensors.values())
        for entry in candidates:
            # To ask for the gradient of what is no leaf would warn.
            tensor = entry.tensor() if entry.is_parameter else None
            gradient = tensor.grad if tensor is not None else None
            if gradient is not None:
                gradients[gradient.data_ptr()] = entry
        of_size.gradients = gradients
        match = gradients.get(pointer) if pointer else None
        if match is None and pointer:  # the tensors themselves stay where they are, as a rule
            of_size.own_tensors = {
                tensor.data_ptr(): entry
                for entry in reversed(candidates)
                if (tensor := entry.tensor()) is not None
            }
            match = of_size.own_tensors.get(pointer)
        if match is None:
            of_size.misses += 1
            if of_size.misses >= MAX_MISSES:
                self._given_up.add(elements)
                self.sizes.pop(elements, None)
            return 0
        of_size.misses = 0
        return match.number or self._give_number(match)

    def _give_number(self, entry: _Tensor) -> int:
        path = self._path(entry)
        entry.number = crc32(path.encode("utf-8", "replace")) or 1
        _write_name(entry.number, path)
        return entry.number

    def _path(self, entry: _Tensor) -> str:
        parts, module = [entry.name], entry.module()
        for _ in range(MAX_DEPTH):
            link = self._parents.get(id(module))
            parent = link[1]() if link is not None and link[0]() is module else None
            if link is None or parent is None or type(parent).__name__ in WRAPPERS:
                break
            parts.append(link[2])
            module = parent
        parts.append(type(module).__name__)
        return ".".join(reversed(parts))


def _write_name(number: int, path: str) -> None:
    """Leave the path in the black box, for those who read numbers there."""
    box = member.here.box
    if box is not None:
        data = path.encode("utf-8", "replace")[-layout.TENSOR_NAME_BYTES :]
        offset = layout.TENSORS_AT + number % layout.TENSORS * layout.TENSOR.size
        layout.TENSOR.pack_into(box.map, offset, number, data, number)


numbers = TensorNumbers()
"""Those of this process."""


def hook(module: Any) -> None:
    """Hooks ``torch.nn.modules.module``; before 2.0 it tells nothing of what is registered."""
    for name, call in (
        ("register_module_parameter_registration_hook", numbers.add_parameter),
        ("register_module_buffer_registration_hook", numbers.add_buffer),
        ("register_module_module_registration_hook", numbers.add_module),
    ):
        register = getattr(module, name, None)
        if callable(register):
            register(call)
