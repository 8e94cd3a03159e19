"""The JSON Schema of what is published, from its type."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec


def json_schema_of(kind: type) -> dict[str, Any]:
    """Its docstrings are the descriptions, written alike by every Python: 3.13 takes indents away."""
    schema: dict[str, Any] = _clean(msgspec.json.schema(kind))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {
        k: inspect.cleandoc(v) if k == "description" and isinstance(v, str) else _clean(v)
        for k, v in value.items()
    }
