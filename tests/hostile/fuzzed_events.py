"""Makes events of every kind that another agent may send, out of values that the wire lets through.

The generator follows the types: each field gets an ordinary value, an extreme one of its bounds, or one that
another event of the same job has, so that events meet in the state of the job.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
from msgspec import inspect as types

from allaboard.cluster.transport.wire import HostEvents
from allaboard.facts import Phase

NAMES = ("", "worker", "ps", "chief", "evaluator", "torch", "tensorflow", "jax", "default", "h1",
         "init_process_group", "all_reduce", "R", "S", "T", "X", "é\x1b[2J\u202e", "x" * 300,
         "worker:0", "tcp://h0:29500", "gloo", "nccl", "evaluator:x", "file:///x", "{", "-1")  # fmt: skip


class EventMaker:
    """Makes events; the same seed makes the same ones."""

    def __init__(self, seed: int, now: float) -> None:
        self.random = random.Random(seed)
        self.now = now

    def make(self) -> list[Any]:
        """Return a few events as a decoded message has them."""
        kind = types.type_info(HostEvents)
        assert isinstance(kind, types.StructType)
        (field,) = [f for f in kind.fields if f.name == "events"]
        assert isinstance(field.type, types.VarTupleType)
        raw = [self._value(field.type.item_type, "") for _ in range(self.random.randrange(1, 5))]
        frame = msgspec.json.encode({"type": "HostEvents", "events": raw, "mono": self.now})
        return list(msgspec.json.decode(frame, type=HostEvents).events)

    def _value(self, kind: types.Type, name: str) -> Any:
        match kind:
            case types.UnionType():
                choices = [t for t in kind.types if not isinstance(t, types.NoneType)]
                has_none = len(choices) < len(kind.types)
                if has_none and self.random.random() < 0.3:
                    return None
                return self._value(self.random.choice(choices), name)
            case types.StructType():
                return self._struct(kind)
            case types.IntType():
                return self._whole(kind, name)
            case types.FloatType():
                return self._real(kind, name)
            case types.StrType():
                return self.random.choice(NAMES)[: kind.max_length]
            case types.BoolType():
                return self.random.random() < 0.5
            case types.BytesType():
                return ""
            case types.VarTupleType():
                return [self._value(kind.item_type, name) for _ in range(self.random.randrange(4))]
            case types.TupleType():
                return [self._value(t, name) for t in kind.item_types]
            case types.DictType():
                count = self.random.randrange(3)
                return {
                    str(self._value(kind.key_type, name)): self._value(kind.value_type, name)
                    for _ in range(count)
                }
            case types.EnumType():
                return self.random.choice(list(kind.cls)).value
            case types.LiteralType():
                return self.random.choice(kind.values)
        raise AssertionError(f"no value for {kind}")

    def _struct(self, kind: types.StructType) -> dict[str, Any] | list[Any]:
        fields = {
            f.encode_name: self._value(f.type, f.name)
            for f in kind.fields
            if f.required or self.random.random() < 0.5
        }
        if kind.tag is not None and kind.tag_field is not None:
            fields[kind.tag_field] = kind.tag
        return fields

    def _whole(self, kind: types.IntType, name: str) -> int:
        low, high = kind.ge or 0, kind.le if kind.le is not None else 1 << 64
        if name == "phase":
            return self.random.choice([int(p) for p in Phase])
        if name == "pid" and self.random.random() < 0.9:
            return self.random.choice((7, 8))
        small = [n for n in (-1, 0, 1, 2, 3) if low <= n <= high]
        return self.random.choice(small) if self.random.random() < 0.8 else (
            self.random.choice((low, high))
        )  # fmt: skip

    def _real(self, kind: types.FloatType, name: str) -> float:
        low = kind.ge if kind.ge is not None else -1e300
        high = kind.le if kind.le is not None else 1e300
        if self.random.random() < 0.2:
            return float(self.random.choice((low, high, 0.0)))
        is_time = name.endswith(("_at", "since"))
        return (self.now if is_time else 0.0) + self.random.choice((-5.0, -0.1, 0.0, 0.1, 3.0))
