"""Removal of values that stand beside the name of a secret: assignments, flags, mappings, prose.

The text is searched for the part of a name that tells (`KEYWORD`), and only what follows it is looked at, so
that the time is linear in the length of the text, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from allaboard.formats.secret_names import (
    KEYWORD,
    REDACTED,
    is_password,
    is_random,
    is_secret_name,
    is_secret_value,
)
from allaboard.late_pattern import compile_late

MAX_NAME_LENGTH = 64
"""Characters of a name that are looked at on either side of its telling part."""
MAX_LIST_LENGTH = 4096
"""Characters of a list that is removed as a whole."""
# (?>…) and *+ (Python 3.11): what has matched is not tried again in shorter pieces.
_ANCHOR = compile_late(
    rf"{KEYWORD}[\w.-]{{0,{MAX_NAME_LENGTH}}}+"
    r"(?:(?P<mark>\\?[\"']?\s{0,16}(?::\s?(?:str|bytes|SecretStr|Any)\s?(?==))?"
    r"(?:={1,2}|:|%3[ad])[ \t]{0,32})"
    r"|(?P<pair>[\"']\s{0,8},\s{0,8}(?=[\"']))|(?P<blank>\s{1,16}))",
    re.I,
)
_QUOTED = compile_late(r'"(?:[^"\\\n]|\\.)*+"|\'(?:[^\'\\\n]|\\.)*+\'')
_ESCAPED = compile_late(r'\\"[^"\\\n]*+\\"')
_CUT_OFF = compile_late(r"[\"'][^\"'\\\n}\]]++$|[\"'][^\s\"'\\,;)\]}]++", re.M)
"""Matches a value whose second quote is missing: up to the end of the line, or of the word."""
_SCHEME = compile_late(r"(?:Bearer|Basic|Token|Negotiate|Digest|ApiKey)\s{1,8}[^\s\"'\\]+", re.I)
_BLOCK = compile_late(r"[|>][-+]?\n[ \t]{1,64}\S[^\n]*")
_ITEMS = compile_late(r"[ \t]*+(?:#[^\n]{0,200})?(?:\n[ \t]{0,64}-[ \t]{1,8}[^\n]+)+")
_ITEM = compile_late(r"(\n[ \t]*-[ \t]+)[^\n]+")
_NEXT_LINE = compile_late(r"\n[ \t]{0,64}(?=[\"'{\[])")
_MAPPING = compile_late(r"\{(?:[^{}]|\{[^{}]{0,512}\}){0,2048}+\}")
_MAPPING_VALUE = compile_late(
    r"""(?P<head>[:=]\s{0,16})(?!\s{0,16}[-0-9.]+\s{0,16}[,}]|\s{0,16}(?:true|false|null|None)\b)"""
    r"""(?P<value>\\"[^"\\]*+\\"|"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\'|[^\s{}"\',\\][^\s{}"\',\\]*+)"""
)
"""Matches the values in a mapping; numbers are no secret by their form."""
_NUMBERS = compile_late(r"\[[\d\s,.-]*+\]\Z")
_WORD = compile_late(r"[^\s,;&\"'}})\]]+")
_FLAG_VALUE = compile_late(r"[^\s\"'\\-][^\s\"'\\]*")
_PROSE_NAME = compile_late(
    r"(?:passw(?:or)?d|passphrase|passcode|api[ _-]?(?:key|token)|access[ _-]?(?:key|token)"
    r"|secret[ _-](?:access[ _-])?key|auth[ _-]?token)\Z",
    re.I,
)
_TOKEN_NAME = compile_late(r"(?:token|secret)\Z", re.I)
_PROSE_VALUE = compile_late(
    r"(?:(?:is|was|are|will be|set to|changed to)\s{1,8}:?\s{0,8})?"
    r"(?:(?P<q>[\"'`])(?P<quoted>[^\s\"'`\\]{4,256})(?P=q)|(?P<word>[^\s\"'`\\]{4,256}))"
)
_SENTENCE_END = ".,;:)"
_SENTENCE = compile_late(r"[a-z]+[ ][\w(]")
NAME_AND_VALUE = compile_late(
    r"""(?P<q>\\?["\']?)\bname(?P=q)\s{0,8}:\s{0,8}\\?["\']?(?P<name>[\w.-]{1,128}+)\\?["\']?"""
    r"""\s{0,64},?\s{0,64}(?P=q)value(?P=q)\s{0,8}:\s{0,8}(?=\S)""",
    re.I,
)
"""Matches the start of a variable of a pod, in YAML or JSON: its name, and where its value begins."""


class Span(NamedTuple):
    """A part of a text that is a secret."""

    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    replacement: str
    """What is put in its place."""


def redact_named_secrets(text: str, count: Callable[[], None]) -> str:
    """Return the text without values of secrets' names; ``count`` is called for each."""
    return _replace_spans(text, _ANCHOR, _span_after_name, count)


def redact_variables_of_pods(text: str, count: Callable[[], None]) -> str:
    """Return the text without the values of secret variables in manifests; ``count`` is called for each."""
    return _replace_spans(
        text,
        NAME_AND_VALUE,
        lambda text, m: (
            _value_span(text, m["name"], m.end()) if is_secret_name(m["name"]) else None
        ),
        count,
    )


def _replace_spans(
    text: str,
    anchor: re.Pattern[str],
    find_span: Callable[[str, re.Match[str]], Span | None],
    count: Callable[[], None],
) -> str:
    pieces, position = [], 0
    for match in anchor.finditer(text):
        if match.start() < position:
            continue  # within a value that is removed already
        span = find_span(text, match)
        if span is not None:
            count()
            pieces += [text[position : span.start], span.replacement]
            position = span.end
    return "".join([*pieces, text[position:]])


def _span_after_name(text: str, match: re.Match[str]) -> Span | None:
    name_end = match.start(match.lastgroup or 0)
    name_start = _word_start(text, match.start())
    name = text[name_start:name_end]
    if match["mark"] is not None:
        return _value_span(text, name, match.end())
    is_flag = name.startswith("-")
    if match["pair"] is not None:
        is_item = is_flag and text[name_start - 1 : name_start] in ("'", '"')
        quoted = _QUOTED.match(text, match.end()) if is_item else None
        return _quoted_span(name.lstrip("-"), quoted) if quoted is not None else None
    return _flag_span(text, name, match.end()) if is_flag else _prose_span(text, name, match.end())


def _word_start(text: str, position: int) -> int:
    lower_bound = max(0, position - MAX_NAME_LENGTH)
    while position > lower_bound and (text[position - 1].isalnum() or text[position - 1] in "_.-"):
        position -= 1
    return position


def _value_span(text: str, name: str, start: int) -> Span | None:
    """Return the value that an assignment, of whatever notation, gives to a secret's name."""
    items = _ITEMS.match(text, start)
    if items is not None:
        return Span(start, items.end(), _ITEM.sub(rf"\1{REDACTED}", items[0]))
    next_line = _NEXT_LINE.match(text, start)
    start = next_line.end() if next_line is not None else start
    first_character = text[start : start + 1]
    if first_character == "{":
        mapping = _MAPPING.match(text, start)
        changed = (
            _MAPPING_VALUE.sub(_redact_mapping_value, mapping[0]) if mapping is not None else ""
        )
        return (
            Span(start, mapping.end(), changed)
            if mapping is not None and changed != mapping[0]
            else None
        )
    if first_character == "[":
        end = text.find("]", start, start + MAX_LIST_LENGTH) + 1
        whole = text[start:end]
        if end and "\n" not in whole:
            quote = '\\"' if '\\"' in whole else '"'
            return (
                None if _NUMBERS.match(whole) else Span(start, end, f"[{quote}{REDACTED}{quote}]")
            )
        start += 1
    if text.startswith(("b'", 'b"'), start):
        start += 1
    quoted = _QUOTED.match(text, start) or _ESCAPED.match(text, start)
    if quoted is not None:
        return _quoted_span(name, quoted)
    value = _SCHEME.match(text, start) or _BLOCK.match(text, start) or _CUT_OFF.match(text, start)
    value = value or _WORD.match(text, start)
    if value is None or not is_secret_value(name, value[0]):
        return None
    is_prose = text[start - 1] == " " and _SENTENCE.match(text, start)
    return None if is_prose else Span(start, value.end(), REDACTED)


def _quoted_span(name: str, quoted: re.Match[str]) -> Span | None:
    quote = '\\"' if quoted[0].startswith("\\") else quoted[0][0]
    content = quoted[0][len(quote) : -len(quote)]
    if not is_secret_value(name, content):
        return None
    return Span(quoted.start(), quoted.end(), f"{quote}{REDACTED}{quote}")


def _flag_span(text: str, flag: str, start: int) -> Span | None:
    value = _QUOTED.match(text, start)
    if value is not None:
        return _quoted_span(flag.lstrip("-"), value)
    word = _FLAG_VALUE.match(text, start)
    if word is None or not is_secret_value(flag.lstrip("-"), word[0]):
        return None
    return Span(start, start + len(word[0].rstrip(_SENTENCE_END)), REDACTED)


def _prose_span(text: str, name: str, start: int) -> Span | None:
    is_password_name = _PROSE_NAME.match(name) is not None
    if not is_password_name and not _TOKEN_NAME.match(name):
        return None
    value = _PROSE_VALUE.match(text, start)
    if value is None:
        return None
    group = "quoted" if value["quoted"] is not None else "word"
    word = value[group].rstrip(_SENTENCE_END)
    is_secret = is_password(word) or group == "quoted" if is_password_name else is_random(word)
    if not is_secret or not is_secret_value(name, word):
        return None
    return Span(value.start(group), value.start(group) + len(word), REDACTED)


def _redact_mapping_value(match: re.Match[str]) -> str:
    value = match["value"]
    for quote in ('\\"', '"', "'"):
        if value.startswith(quote):
            return f"{match['head']}{quote}{REDACTED}{quote}"
    return f"{match['head']}{REDACTED}"
