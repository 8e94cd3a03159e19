"""Messages that say the same of several members, joined into one: one fact is one finding. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.facts import Heard

MAX_NAMES = 8
"""Further members that are named."""


def join_alike(messages: Iterable[Heard]) -> tuple[Heard, ...]:
    """Return the messages, those that differ only in whom they name as one, in the order of the first."""
    joined: list[tuple[Heard, list[str]]] = []
    for message in messages:
        for place, (first, names) in enumerate(joined):
            if name := _other_name(first, message):
                both = msgspec.structs.replace(
                    first,
                    speakers=first.speakers + message.speakers,
                    about=first.about + tuple(w for w in message.about if w not in first.about),
                )
                joined[place] = (both, [*names, name])
                break
        else:
            joined.append((message, []))
    return tuple(_with_names(message, names) for message, names in joined)


def _other_name(first: Heard, message: Heard) -> str:
    """Return whom the second message names, if it says and advises the same about another; else ""."""
    if first.rule != message.rule or first.severity is not message.severity or first.awaits:
        return ""
    one, other = first.says.split(" "), message.says.split(" ")
    if len(one) != len(other):
        return ""
    different = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    if len(different) != 1:
        return ""
    name, new_name = (word.strip(",.:;()'\"") for word in different[0])
    if not all(any(c.isdigit() or c in "-." for c in n) for n in (name, new_name)):
        return ""
    return new_name if first.fix.replace(name, new_name) == message.fix != first.fix else ""


def _with_names(message: Heard, names: list[str]) -> Heard:
    if not names:
        return message
    more = " ..." if len(names) > MAX_NAMES else ""
    return msgspec.structs.replace(
        message, says=f"{message.says} (the same for {', '.join(names[:MAX_NAMES])}{more})"
    )
