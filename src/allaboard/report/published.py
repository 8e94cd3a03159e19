"""The JSON Schema of what is published, from its type."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec


def published(kind: type) -> dict[str, Any]:
    """Its docstrings are the descriptions, written alike by every Python: 3.13 takes indents away."""
    made: dict[str, Any] = _clean(msgspec.json.schema(kind))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {
        k: inspect.cleandoc(v) if k == "description" and isinstance(v, str) else _clean(v)
        for k, v in value.items()
    }
