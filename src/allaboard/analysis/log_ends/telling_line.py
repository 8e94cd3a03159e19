"""The part of a long message that says most: the reason that it quotes, or the innermost text of its JSON.

Pure. Libraries begin a message with the place of their own check, and pass the reason on at its end.
"""

from __future__ import annotations

from allaboard.late_pattern import compile_late

MAX_CHARS = 200
"""Characters of the part that are returned."""
MAX_FIRST_LINE_CHARS = 160
"""Characters of a message's first line that are returned; half as many in front of a part."""
_MARKED = compile_late(
    r"(?:^|[\s;.,(])(?:[Ll]ast error|[Oo]riginal (?:error|exception|reason[\w ]{0,20}|failure)|[Rr]oot cause"
    r"|[Cc]aused by|(?<!for )Reason|[Ii]nner exception|[Uu]nderlying (?:error|cause)"
    r"|[Ee]rror (?:message|details?)"
    r"|The last failure)\b[\w ]{0,24}:\s{1,40}(?P<words>\S[^\n]*)"
)
"""A reason after the words that announce it, in the same line or in the next."""
_JSON_TEXT = compile_late(
    r'"(?:description|os_error|grpc_message|message|msg|error|reason|details?)" ?: ?'
    r'"(?P<text>[^"\\]{3,400})"'
)
_NATIVE_PLACE = compile_late(r"^[^\s:]{1,160}\.(?:cc|cpp|cxx|cu|h|hpp):\d+[\])]?[ :]*")


def telling_part(message: str) -> str:
    """Return what the message says of its reason; "" if its beginning says as much as the rest."""
    texts = list(dict.fromkeys(m["text"].strip() for m in _JSON_TEXT.finditer(message[:4000])))
    if texts:
        return "; ".join(texts[-2:] if len(texts) > 1 else texts)[:MAX_CHARS]
    marked = [m["words"] for m in _MARKED.finditer(message[:8000])]
    words = _NATIVE_PLACE.sub("", marked[-1].strip()) if marked else ""
    return words.rstrip(" .")[:MAX_CHARS]


def with_telling_part(message: str) -> str:
    """Return the first line of the message, and its telling part after it if that is not in there."""
    first_line = " ".join(message.partition("\n")[0].split())
    part = " ".join(telling_part(message).split())
    if not part or part[:60] in first_line[:MAX_FIRST_LINE_CHARS]:
        return first_line[:MAX_FIRST_LINE_CHARS]
    return f"{first_line[: MAX_FIRST_LINE_CHARS // 2].rstrip()} ... {part}"
