"""Takes the names and addresses of hosts and the name of the user out of a record that is to be shared."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import cache
from typing import TypeVar

from allaboard.formats.redacted_records import map_texts, redact_record

Value = TypeVar("Value")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6 = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_HOME = re.compile(r"""(/home/|/Users/)[^/\s'":,)\]]+""")
KEPT_NAMES = frozenset(("localhost", ""))
MIN_SHORT_NAME = 4
"""Characters from which on the first label of a host's full name is masked by itself."""


def without_hosts(record: Value, hosts: Iterable[str]) -> Value:
    """Return the record with host names, addresses and the user's home folder replaced, and all that may be a
    secret removed.

    One name becomes the same number everywhere, so that one still sees which host is which.
    """
    names = sorted({h for h in hosts if h not in KEPT_NAMES and not _is_address(h)})
    numbers = {name: f"host-{n}" for n, name in enumerate(names)}
    for name in names:
        short = name.partition(".")[0]
        if len(short) >= MIN_SHORT_NAME:
            numbers.setdefault(short, numbers[name])
    addresses: dict[str, str] = {}

    def mask_address(match: re.Match[str]) -> str:
        text = match[0]
        if not _is_address(text) or _is_no_secret(text):
            return text
        return addresses.setdefault(text, f"address-{len(addresses)}")

    by_length = sorted(numbers, key=len, reverse=True)
    host_names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, by_length))})(?![\w-])")

    @cache
    def mask(text: str) -> str:
        if by_length:
            text = host_names.sub(lambda match: numbers[match[0]], text)
        text = _IPV6.sub(mask_address, _IPV4.sub(mask_address, text))
        return _HOME.sub(r"\1user", text)

    masked: Value = map_texts(redact_record(record), mask)
    return masked


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_no_secret(text: str) -> bool:
    address = ipaddress.ip_address(text)
    return address.is_loopback or address.is_unspecified
