"""Parses the address of an etcd cluster, as a user writes it after --coordinator."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

ETCD_SCHEMES = ("etcd", "etcds")
DEFAULT_ETCD_PORT = 2379
"""etcd's default port for clients; https://etcd.io/docs/v3.5/op-guide/configuration."""
COORDINATOR_EXAMPLE = "--coordinator etcd://node9:2379/my-job"
_PREFIX = re.compile(r"[A-Za-z0-9._/-]*")


class EtcdUrl(NamedTuple):
    """A parsed etcd:// or etcds:// address."""

    endpoints: tuple[tuple[str, int], ...]
    """Hosts and ports, tried in this order."""
    prefix: str
    """Prefix of the keys after ``/allaboard``; "" if none is given."""
    secure: bool
    """Use TLS (etcds://)."""

    @property
    def text(self) -> str:
        """The address in its normal form."""
        hosts = ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in self.endpoints)
        path = f"/{self.prefix}" if self.prefix else ""
        return f"{ETCD_SCHEMES[self.secure]}://{hosts}{path}"


def is_etcd_url(address: str) -> bool:
    """Return True if this address names an etcd cluster."""
    return address.partition("://")[0] in ETCD_SCHEMES


def parse_etcd_url(address: str) -> EtcdUrl:
    """Parse ``etcd://HOST[:PORT][,HOST…][/PREFIX]``. Raises ValueError that says what is wrong."""
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
