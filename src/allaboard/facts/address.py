"""Network addresses: ``host:port``, ``[::1]:port``, ``grpc://host:port/path``.

`Address` is the one type for them; nothing else takes a ``host:port`` apart by hand.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

DEFAULT_PORT = {"tensorflow": 2222, "pytorch": 29500, "jax": 1234}
"""Ports that the frameworks' own documents use in their examples."""


def whole_number(text: str) -> int | None:
    """Return the text as a whole number in ASCII decimals; None if it is not one, or absurdly long."""
    text = text.strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None


LOOPBACK_NAMES = frozenset(
    (
        "localhost",
        "localhost.localdomain",
        "localhost4",
        "localhost4.localdomain4",
        "localhost6",
        "localhost6.localdomain6",
        "ip6-localhost",
        "ip6-loopback",
        "::1",
        "0:0:0:0:0:0:0:1",
    )
)
"""Names in the usual /etc/hosts, and the IPv6 number, that mean this host alone."""


class Address(NamedTuple):
    """A host and a port, as somebody wrote them."""

    host: str
    """Name or number of the host, an IPv6 address without its brackets; "" if there is none."""
    port: str = ""
    """The port as written, which need not be a number; "" if there is none."""
    scheme: str = ""
    """``grpc`` of ``grpc://host:port``; "" if there is none."""
    rest: str = ""
    """What follows host and port, with its slash; "" if nothing does."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the parts of an address, however wrong they are; never raises.

        More than one colon without brackets is an IPv6 address without a port.
        """
        return parse_address(text)

    @classmethod
    def from_endpoint(cls, text: str) -> Address:
        """Return the parts of a ``host:port`` whose port is known to be there; never raises.

        The last colon separates them, so that an IPv6 address needs no brackets; it may have one pair.
        """
        host, colon, port = text.rpartition(":")
        if not colon:
            return cls(text)
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]  # one pair: PyTorch looks [fd00::1] up as a name, which nobody has
        return cls(host, port)

    @property
    def number(self) -> int:
        """The port as a number from 1 to 65535; 0 if it is missing or none of these."""
        number = whole_number(self.port)
        return number if number is not None and 0 < number < 65536 else 0

    @property
    def is_complete(self) -> bool:
        """True if there are a host and a port that can be connected to."""
        return bool(self.host) and self.number > 0

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port number, as sockets take them. Raises ValueError if the port is none from 1 to
        65535."""
        if not self.number:
            raise ValueError(f"{self}: not host:port")
        return self.host, self.number

    def __str__(self) -> str:
        """``host:port`` without scheme and path, with brackets around an IPv6 address."""
        return join_host_port(self.host, self.port) if self.port else self.host


@lru_cache(maxsize=2**17)
def parse_address(text: str) -> Address:
    """Return the parts of an address, as `Address.parse` does."""
    text = text.strip()
    scheme, marks, behind = text.partition("://")
    if marks and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        text = behind
    else:
        scheme = ""
    text, slash, path = text.partition("/")
    path = slash + path
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return Address(host, port.removeprefix(":"), scheme, path)
    if text.count(":") > 1:
        return Address(text, "", scheme, path)
    host, _, port = text.partition(":")
    return Address(host, port, scheme, path)


def join_host_port(host: str, port: str | int) -> str:
    """Return ``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_this_host_alone(host: str) -> bool:
    """Return True if the name can mean this host alone: loopback, or "any address"."""
    name = host.strip("[]").lower().rstrip(".")
    return name in LOOPBACK_NAMES or name.startswith("127.") or is_wildcard(name)


def is_wildcard(host: str) -> bool:
    """Return True if it is the address that a server binds to listen on every interface."""
    return host.strip("[]") in ("0.0.0.0", "::", "0", "*")


def why_unusable(host: str) -> str:
    """Return why no host can have this address; "" if one may.

    Addresses of 240.0.0.0/4 are in use inside of clouds.
    """
    name = host.strip("[]").lower()
    if name == "255.255.255.255":
        return f"{name} is the broadcast address, at which nobody listens"
    first_octet = whole_number(name.partition(".")[0])
    if _ipv4(name) and first_octet is not None and 224 <= first_octet < 240:
        return f"{name} is a multicast address, which no host has"
    if re.fullmatch(r"ff[0-9a-f]{2}:[0-9a-f:]+", name):
        return f"{name} is a multicast address, which no host has"
    return ""


def lacks_interface(host: str) -> bool:
    """Return True for a link-local IPv6 address without its interface, which RFC 4007 requires."""
    return re.fullmatch(r"fe[89ab][0-9a-f]:[0-9a-f:]+", host.strip("[]").lower()) is not None


LINK_LOCAL = "is a link-local IPv6 address without its interface, which leads nowhere"


def canonical_address(text: str) -> str:
    """Return the same text for addresses that surely are the same place."""
    bare = text.strip().lower()
    address = Address(bare) if bare in LOOPBACK_NAMES else parse_address(text)
    host = address.host.lower().rstrip(".")
    if host == "127.0.0.1" or host in LOOPBACK_NAMES:
        host = "localhost"
    port = address.port.lstrip("0") or address.port
    return join_host_port(host, port) if port else host


def address_fault(text: str, *, port: int, needs_port: bool = True) -> tuple[str, str] | None:
    """Return what is wrong with the form of a ``host:port``, and the right form; None if nothing is.

    ``port`` is the one proposed where there is none that could be kept.
    """
    address = parse_address(text)
    host = re.sub(r"\s", "", address.host) or "HOST"
    number = whole_number(address.port)
    kept_port = number if number is not None and 0 < number < 65536 else port
    right = join_host_port(host, kept_port)
    odd_character = next((c for c in text if ord(c) > 127), "")
    if not text.strip():
        return "is empty", right
    if text != text.strip() or re.search(r"\s", text):
        return "has a space in it", right
    if address.scheme:
        return f"begins with {address.scheme}://; a task's address has no scheme", right
    if odd_character and not odd_character.isalnum():
        import unicodedata  # for the few that have such letters

        name = unicodedata.name(odd_character, f"U+{ord(odd_character):04X}")
        return (
            f"has the character {odd_character!r} ({name}), which no host name has",
            f"HOST:{kept_port}",
        )
    if re.search(r"['\"`]", text):
        bare = parse_address(re.sub(r"['\"`]", "", text))
        return "has a quotation mark in it", join_host_port(bare.host or "HOST", kept_port)
    if re.search(r"[<>${}]", text):
        return "is a placeholder that nobody filled in", f"HOST:{kept_port}"
    if address.rest:
        return f"ends in {address.rest!r}; an address has no path", right
    if "," in text or ";" in text:
        return "looks like several addresses in one entry", text.split(",")[0].split(";")[0]
    if not address.host:
        return "has no host", right
    if address.host.count(":") and not text.startswith("["):
        return _bare_ipv6(text, port)
    if re.fullmatch(r"[\d.]+", address.host) and not _ipv4(address.host):
        return f"{address.host} is no IPv4 address", f"HOST:{kept_port}"
    reason = why_unusable(address.host)
    if reason:
        return reason, join_host_port("HOST", kept_port)
    if lacks_interface(address.host):
        return LINK_LOCAL, join_host_port(f"{host}%INTERFACE", kept_port)
    if not address.port:
        return ("has no port", right) if needs_port else None
    if number is None:
        return f"has a port that is not a number: {address.port!r}", right
    if not 0 <= number < 65536:
        return f"has port {number}; ports go from 1 to 65535", right
    if number == 0:
        return "has port 0, which means any free port: nobody else could know it", right
    return None


def _ipv4(host: str) -> bool:
    parts = host.split(".")
    numbers = [whole_number(p) for p in parts]
    return len(parts) == 4 and all(n is not None and 0 <= n < 256 for n in numbers)


def _bare_ipv6(text: str, port: int) -> tuple[str, str] | None:
    head, _, tail = text.rpartition(":")
    if len(tail) in (4, 5) and 0 < (whole_number(tail) or 0) < 65536 and head.count(":") > 1:
        return "is an IPv6 address without brackets", f"[{head.rstrip(':') or '::'}]:{tail}"
    if re.fullmatch(r"[0-9A-Fa-f:.%\w]+", text) and re.match(r"[0-9A-Fa-f]*:", text):
        return "is an IPv6 address without brackets and without a port", f"[{text}]:{port}"
    host, second = text.split(":")[:2]
    return "has more than one ':'", f"{host}:{second}"
