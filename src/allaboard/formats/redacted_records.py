"""Removal of secrets from records: every text in a struct, a list or a mapping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import msgspec

from allaboard.formats.redaction import redact_command, redact_text
from allaboard.formats.secret_names import REDACTED, is_secret_name, is_secret_value

Value = TypeVar("Value")
MIN_LENGTH = 8
"""Characters below which a text is only a name or a word."""


def redact_record(
    record: Value, secrets: Iterable[str] = (), counts: Counter[str] | None = None
) -> Value:
    """Return the record without secrets in any text of it; a command is redacted by its words.

    ``secrets`` are removed wherever they stand; ``counts`` gets how many of each kind were removed; a text
    that stands in several places counts once.
    """
    known_secrets = list(secrets)

    @cache
    def redact(text: str) -> str:
        return redact_text(text, known_secrets, counts) if len(text) >= MIN_LENGTH else text

    def redact_words(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(redact_command(words, known_secrets, counts))

    redacted: Value = map_texts(record, redact, redact_words)
    return redacted


def redact_document(
    text: str, secrets: Iterable[str] = (), counts: Counter[str] | None = None
) -> str:
    """Return a text without secrets; JSON, or lines of JSON, stay what they are."""
    known_secrets = list(secrets)
    whole = _decode(text)
    if whole is not None:
        redacted = redact_record(whole, known_secrets, counts)
        return msgspec.json.format(msgspec.json.encode(redacted), indent=2).decode() + "\n"
    lines = text.splitlines(keepends=True)
    if not any(line.startswith("{") for line in lines[:1]):
        return redact_text(text, known_secrets, counts)
    pieces = []
    for line in lines:
        entry = _decode(line)
        pieces.append(
            redact_text(line, known_secrets, counts)
            if entry is None
            else msgspec.json.encode(redact_record(entry, known_secrets, counts)).decode() + "\n"
        )
    return "".join(pieces)


def _decode(text: str) -> Any:
    """Return the mapping or list of this JSON; None if it is none."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def map_texts(
    value: Any,
    change: Callable[[str], str],
    change_words: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None,
) -> Any:
    """Return the value with every text in it changed; words of an enumeration are no texts.

    ``change_words`` changes sequences of texts that hold a flag, such as the arguments of a program. What
    does not change is the same object as before.
    """
    if type(value) is str:
        return change(value)
    if isinstance(value, msgspec.Struct):
        changes = {}
        for name in value.__struct_fields__:
            field_value = getattr(value, name)
            changed = map_texts(field_value, change, change_words)
            if changed is not field_value:
                changes[name] = changed
        return msgspec.structs.replace(value, **changes) if changes else value
    if isinstance(value, tuple | list):
        if change_words is not None and _is_command(value):
            items = list(change_words(tuple(value)))
        else:
            items = [map_texts(item, change, change_words) for item in value]
        is_unchanged = all(a is b or a == b for a, b in zip(items, value, strict=True))
        if is_unchanged:
            return value
        return value._make(items) if hasattr(value, "_make") else type(value)(items)
    if isinstance(value, dict):
        return {
            map_texts(k, change): _map_entry(k, v, change, change_words) for k, v in value.items()
        }
    return value


def _map_entry(
    key: Any,
    value: Any,
    change: Callable[[str], str],
    change_words: Callable[[tuple[str, ...]], tuple[str, ...]] | None,
) -> Any:
    # Under the name of a secret the whole value is one, whatever it looks like.
    is_named = change_words is not None and type(key) is str and type(value) is str
    if is_named and is_secret_name(key) and is_secret_value(key, value):
        return REDACTED
    return map_texts(value, change, change_words)


def _is_command(value: Iterable[Any]) -> bool:
    return all(type(item) is str for item in value) and any(item[:1] == "-" for item in value)
