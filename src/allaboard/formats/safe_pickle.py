"""Reader of pickles that hold only dicts, lists, tuples, texts and numbers; it never loads one.

Unpickling runs what the file names. Here the few opcodes that build plain values are carried out by hand, and
any other (GLOBAL, REDUCE, BUILD, ...) refuses the file. Opcodes as in `pickletools`.
"""

from __future__ import annotations

import pickletools
from typing import Any

from allaboard.errors import AllaboardError

MAX_OPCODES = 20_000_000
"""Opcodes that are read: enough for some hundred thousand collectives with their frames."""
MAX_INTEGER_BYTES = 16
"""Bytes of a whole number."""
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES"),
}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


class UnsafePickleError(AllaboardError, ValueError):
    """A pickle that is truncated, too large, or holds more than plain values; the message says which."""


def read_plain_pickle(data: bytes) -> Any:
    """Return the value that was pickled.

    Keys of dicts are texts, numbers or None. Shared and circular values are kept so: whoever walks the result
    has to bound that.

    Raises:
        UnsafePickleError: the data is no whole pickle of plain values.
    """
    machine = _Machine()
    try:
        for count, (opcode, argument, at) in enumerate(pickletools.genops(data)):
            if count > MAX_OPCODES:
                raise UnsafePickleError(f"more than {MAX_OPCODES} opcodes")
            machine.take(opcode.name, argument, at or 0)
    except UnsafePickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise UnsafePickleError(f"not a whole pickle: {str(error)[:120]}") from None
    if not machine.done or len(machine.stack) != 1 or machine.stack[0] is _MARK:
        raise UnsafePickleError("not a whole pickle: it has no end")
    return machine.stack[0]


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.done = False

    def take(self, name: str, argument: Any, at: int) -> None:
        stack = self.stack
        if name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in _VALUES:
            # Longer ones take long to print, and beyond 4,300 digits Python refuses to.
            if isinstance(argument, int) and argument.bit_length() > 8 * MAX_INTEGER_BYTES:
                raise UnsafePickleError(
                    f"a number of more than {MAX_INTEGER_BYTES} bytes at byte {at}"
                )
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            size = _TUPLES[name]
            items = self._pop(size)
            stack.append(tuple(items))
        elif name == "TUPLE":
            stack.append(tuple(self._marked()))
        elif name in ("APPENDS", "APPEND"):
            items = self._marked() if name == "APPENDS" else self._pop(1)
            self._top(list).extend(items)
        elif name in ("SETITEMS", "SETITEM"):
            items = self._marked() if name == "SETITEMS" else self._pop(2)
            self._set(items, at)
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self._top(object)
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self._top(object)
        elif name == "STOP":
            self.done = True
        elif name not in ("PROTO", "FRAME"):
            raise UnsafePickleError(f"it would run code: opcode {name} at byte {at}")

    def _set(self, items: list[Any], at: int) -> None:
        target = self._top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int | float | None):
                raise UnsafePickleError(f"a key that is no text and no number at byte {at}")
            target[key] = value

    def _top(self, kind: type) -> Any:
        top = self.stack[-1]
        if top is _MARK or not isinstance(top, kind):
            raise ValueError(f"no {kind.__name__} where one must be")
        return top

    def _pop(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("the stack is empty")
        items = self.stack[-count:]
        del self.stack[-count:]
        if any(i is _MARK for i in items):
            raise ValueError("a mark where a value must be")
        return items

    def _marked(self) -> list[Any]:
        mark = len(self.stack) - 1
        while self.stack[mark] is not _MARK:
            mark -= 1
            if mark < 0:
                raise ValueError("no mark")
        items = self.stack[mark + 1 :]
        del self.stack[mark:]
        return items
