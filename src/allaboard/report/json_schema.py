"""The JSON Schema of a published document, made from its type."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec


def json_schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type, with its docstrings as descriptions.

    Descriptions are the same with every Python: Python 3.13 strips the indentation of docstrings, earlier
    ones keep it.
    """
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
