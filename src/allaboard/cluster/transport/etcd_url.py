"""The address of a meeting in etcd, as a user writes it."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

ETCD_SCHEMES = ("etcd", "etcds")
DEFAULT_ETCD_PORT = 2379
"""etcd's own for clients; https://etcd.io/docs/v3.5/op-guide/configuration."""
COORDINATOR_EXAMPLE = "--coordinator etcd://node9:2379/my-job"
_PREFIX = re.compile(r"[A-Za-z0-9._/-]*")


class EtcdUrl(NamedTuple):
    """``endpoints`` are host and port, tried in this order; ``secure``: over TLS; ``prefix`` what the keys
    begin with after ``/allaboard``, "" where none is given."""

    endpoints: tuple[tuple[str, int], ...]
    prefix: str
    secure: bool

    @property
    def text(self) -> str:
        hosts = ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in self.endpoints)
        path = f"/{self.prefix}" if self.prefix else ""
        return f"{ETCD_SCHEMES[self.secure]}://{hosts}{path}"


def is_etcd_url(address: str) -> bool:
    """Whether this address of a meeting means etcd."""
    return address.partition("://")[0] in ETCD_SCHEMES


def parse_etcd_url(address: str) -> EtcdUrl:
    """``etcd://HOST[:PORT][,HOST…][/PREFIX]``. Raises ValueError with what is wrong with it."""
    scheme, _, remainder = address.partition("://")
    hosts, _, path = remainder.partition("/")
    if "@" in hosts:
        raise ValueError(
            "no user here, others can read it in ps: set ETCDCTL_USER=name:password, as for etcdctl"
        )
    prefix = path.strip("/")
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"/{prefix}: letters, digits and ._-/ make a prefix; e.g. {COORDINATOR_EXAMPLE}"
        )
    endpoints = tuple(_parse_endpoint(text) for text in hosts.split(","))
    return EtcdUrl(endpoints, prefix, scheme == ETCD_SCHEMES[1])


def _parse_endpoint(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0:
        raise ValueError(f"{text or 'nothing'} is no HOST:PORT; e.g. {COORDINATOR_EXAMPLE}")
    return host, DEFAULT_ETCD_PORT if port is None else port
