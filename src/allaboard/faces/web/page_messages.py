"""What the page's script may send to the server."""

from __future__ import annotations

from typing import Literal

import msgspec

MAX_ROWS = 500
"""Rows of the table of ranks that a page may ask for."""
MAX_LANES = 500
"""Ranks of the timeline that a page may ask for at once."""
MAX_SEARCH_LENGTH = 200

Metric = Literal["", "step", "step_s", "waiting", "memory_nbytes", "cpu"]


class Login(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="login"):
    """First message: the token of the URL."""

    token: str
    """The token."""


class View(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="view"):
    """What of the ranks is shown from now on."""

    metric: Metric = ""
    """Field of the ranks that the grid shows by colour; "" for what they do."""
    filter: str = "all"
    """Name of a filter of the table."""
    order: str = "urgency"
    """Name of an order of the table."""
    search: str = ""
    """Words that the ranks of the table must have."""
    limit: int = 50
    """Rows of the table."""
    selected: int = -1
    """Index of the rank whose details are wanted; -1 for none."""


class LanesRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="lanes"):
    """Asks for the timelines of some ranks so far."""

    start: int = 0
    """Index of the topmost rank."""
    count: int = 100
    """Number of ranks."""


class PageStacksRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="stacks"):
    """Asks for fresh stacks of all ranks."""


PageRequest = Login | View | LanesRequest | PageStacksRequest
_DECODER = msgspec.json.Decoder(PageRequest)


def decode_page_request(text: str | bytes) -> PageRequest | None:
    """Return the message of a page; None if it is none."""
    try:
        request: PageRequest = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return request
