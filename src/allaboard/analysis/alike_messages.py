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
        for position, (earlier, names) in enumerate(joined):
            if name := _other_name(earlier, message):
                joined_message = msgspec.structs.replace(
                    earlier,
                    speakers=earlier.speakers + message.speakers,
                    about=earlier.about + tuple(w for w in message.about if w not in earlier.about),
                )
                joined[position] = (joined_message, [*names, name])
                break
        else:
            joined.append((message, []))
    return tuple(_with_names(message, names) for message, names in joined)


def _other_name(earlier: Heard, message: Heard) -> str:
    """Return whom the second message names, if it says and advises the same about another; else ""."""
    if earlier.rule != message.rule or earlier.severity is not message.severity or earlier.awaits:
        return ""
    earlier_words, new_words = earlier.says.split(" "), message.says.split(" ")
    if len(earlier_words) != len(new_words):
        return ""
    different = [(a, b) for a, b in zip(earlier_words, new_words, strict=True) if a != b]
    if len(different) != 1:
        return ""
    name, new_name = (word.strip(",.:;()'\"") for word in different[0])
    if not all(any(c.isdigit() or c in "-." for c in n) for n in (name, new_name)):
        return ""
    return new_name if earlier.fix.replace(name, new_name) == message.fix != earlier.fix else ""


def _with_names(message: Heard, names: list[str]) -> Heard:
    if not names:
        return message
    more = " ..." if len(names) > MAX_NAMES else ""
    return msgspec.structs.replace(
        message, says=f"{message.says} (the same for {', '.join(names[:MAX_NAMES])}{more})"
    )
