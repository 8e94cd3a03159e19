"""A training script as text; rules of the CODE family read its syntax tree."""

from __future__ import annotations

import msgspec


class ScriptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A script that parses."""

    source: str
    """Its text, never run."""
    file: str = "train.py"
    """Its name, as given."""
