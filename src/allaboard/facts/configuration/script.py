"""A training script as text; rules of the CODE family read its syntax tree."""

from __future__ import annotations

import msgspec


class ScriptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A script that parses: ``file`` its name as given, ``source`` its text, never run."""

    source: str
    file: str = "train.py"
