"""Names and options under which secrets stand, and what a value must look like to be one."""

from __future__ import annotations

import re
from itertools import pairwise

from allaboard.late_pattern import compile_late

SECRET_FLAGS = frozenset(["--notify", "--heartbeat-url", "--on-finding", "--otlp"])
"""Options of allaboard whose values are secrets: whoever knows the URL of a chat, a pager or a monitor may
write there; a command may contain a password."""
REDACTED = "(redacted)"
"""Replaces a secret."""
MIN_RANDOM_LENGTH = 16
"""Characters from which on letters and digits without order are taken for a secret."""
MIN_PASSWORD_LENGTH = 6
"""Characters of a password in prose."""
KEYWORD = (
    r"(?:token(?!s|iz)|secret[ _-](?:access[ _-])?key|secret|passw(?:or)?d|passphrase|passcode"
    r"|(?<![a-z])(?:db|pg|my|mysql|redis|smtp|ftp|ssh|user|root|admin)?(?:pass|pwd?)(?![a-z])"
    r"|credential|(?<![a-z])creds?(?![a-z])|private[_-]?key|webhook|connection[_-]?string"
    r"|(?:account|shared|storage|master|encryption|signing|client|subscription)[_-]?key"
    r"|api[ _-]?key|access[ _-]?key|auth(?!or(?!i[sz]ation(?![a-z]))|entic)|cookie|(?<![a-z])jwt(?![a-z])"
    r"|(?<![a-z])key(?![a-z]))"
)
"""Matches the part of a name by which it is that of a secret.

Counts of tokens, tokenizers, dictionaries' keys and authors are not secrets.
"""
KEYWORD_HINTS = (
    *("token", "secret", "pass", "pw", "cred", "key", "webhook", "auth", "cookie", "jwt"),
    *("connection", "api"),
)
"""One of these is in every text that `KEYWORD` matches, in lower case."""
_NAME = compile_late(rf"[\w.-]*?{KEYWORD}[\w.-]*", re.I)
_WEAK_NAME = compile_late(
    r"(?:(?:store|cache|dict|sort|primary|foreign|partition|public|group|barrier|state|lookup|hash|map"
    r"|tensor|param\w*|kv)[_.-]?)?keys?",
    re.I,
)
"""Matches names that are more often those of a dictionary's or a store's key: only a random value counts."""
_DESCRIPTIVE_NAME = compile_late(
    r".*[_.-]?(?:file|path|dir|folder|name|type|size|len|length|count|ttl|timeout)", re.I
)
"""Matches names of what describes a secret: where it lies, how long it is."""
_PLAIN = compile_late(
    r"(?:-?[0-9.]{1,20}|true|false|null|none|yes|no|on|off|auto|str|bytes|int|bool|-+"
    r"|password|secret|token|<[^>\n]*>?|-{1,2}[a-z][\w-]*)\Z",
    re.I,
)
"""Matches values whose form says that they are no secret; removing them would break the JSON around them."""
_PLACE = compile_late(r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]*)*\Z")
_REFERENCE = compile_late(
    r"\$\{[\w.:-]+\}?\Z|\$[A-Z_][A-Z0-9_]*\Z|[A-Za-z_]\w*(?:\.\w+)*[(\[]|\*{3,}\Z"
)
"""Matches a variable of a shell, a call or an element of Python, and what is masked already."""
_ATTRIBUTE = compile_late(r"[a-z_]+(?:\.[a-z_]+)+\Z")
_MEASURE = compile_late(r"\d[\d.,:]*[A-Za-z%]{0,3}\Z|0x[0-9a-fA-F]+\Z|[\w./-]+\.[a-z]{1,4}:\d+\Z")
_LETTER, _DIGIT = compile_late(r"[A-Za-z]"), compile_late(r"\d")
_SYMBOL = compile_late(r"[!@#$%^&*+=~?]")
_PASSPHRASE = compile_late(r"(?:\w+-){3,}\w+\Z")


def is_secret_name(name: str) -> bool:
    """Return True if a variable, a flag or a key of this name may hold a secret."""
    return bool(_NAME.fullmatch(name.lstrip("-")))


def is_secret_value(name: str, value: str) -> bool:
    """Return True if this value of a name that `is_secret_name` accepts is a secret by its form.

    It is none if it is a number, a word of JSON, a path, a reference to something else, or removed already.
    """
    value = value.strip("\"'\\")
    if value.startswith(REDACTED[:-1]) or _PLAIN.match(value) or not any(map(str.isalnum, value)):
        return False
    if _WEAK_NAME.fullmatch(name) or _DESCRIPTIVE_NAME.fullmatch(name):
        return is_random(value)
    if _REFERENCE.match(value) or _ATTRIBUTE.match(value):
        return False
    return not _PLACE.match(value) or any(is_random(part) for part in value.split("/"))


def is_random(text: str) -> bool:
    """Return True for a long word of letters and digits without order, such as a token."""
    return len(text) >= MIN_RANDOM_LENGTH and text.isascii() and text.replace("-", "").replace(
        "_", ""
    ).isalnum() and class_changes(text) >= len(text) // 4  # fmt: skip


def class_changes(text: str) -> int:
    """Return how often a digit, a capital, a small letter or a sign is followed by one of another kind."""
    kinds = [
        "0" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else "-" for c in text
    ]
    return sum(a != b for a, b in pairwise(kinds))


def is_password(word: str) -> bool:
    """Return True if a word of a sentence looks like a password: with a digit or a sign, not like a measure,
    a place or a path. A password of letters alone is not recognized."""
    if len(word) < MIN_PASSWORD_LENGTH or word.startswith(REDACTED[:-1]) or "://" in word:
        return False
    if _MEASURE.match(word) or _PLACE.match(word) or _REFERENCE.match(word):
        return False
    has_digit = _DIGIT.search(word) is not None
    has_letter = _LETTER.search(word) is not None
    return has_letter and (has_digit or bool(_SYMBOL.search(word) or _PASSPHRASE.match(word)))
