"""Which hosts' certificates are taken, besides that the job's authority has signed them. Pure.

An authority that signs more than one job's hosts, as that of a whole company does, would let all of them in.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import ssl
from typing import Any, NamedTuple

from allaboard.errors import AllaboardError
from allaboard.formats.slurm_hostlist import HostlistError, expand_hostlist
from allaboard.late_pattern import compile_late

MAX_SHOWN_NAMES = 4
"""Names of a certificate that a message shows."""
_FINGERPRINT = compile_late(r"sha256:((?:[0-9a-f]{2}:?){32})")
_NAME = compile_late(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?", re.ASCII)


class PeerNamesError(AllaboardError):
    """An entry that is no name of a host and no fingerprint; the message says which."""


class PeerNames(NamedTuple):
    """The names and fingerprints of which a certificate must have one."""

    names: frozenset[str]
    """DNS names in lower case, ``*.`` for any first label; and addresses."""
    fingerprints: frozenset[str]
    """SHA-256 of whole certificates, in lower-case hexadecimal digits."""

    def describe_mismatch(self, certificate: dict[str, Any], der: bytes) -> str:
        """Return what the certificate says instead of one of the names; "" if it has one.

        ``certificate`` is as `ssl.SSLSocket.getpeercert` returns it, ``der`` the same in bytes.
        """
        fingerprint = hashlib.sha256(der).hexdigest()
        names = certificate_names(certificate)
        if fingerprint in self.fingerprints or any(map(self._has, names)):
            return ""
        shown = ", ".join(names[:MAX_SHOWN_NAMES]) or "no name"
        return f"none of the job's names (--tls-names), but {shown}; sha256:{fingerprint}"

    def _has(self, name: str) -> bool:
        return name in self.names or f"*.{name.partition('.')[2]}" in self.names


def certificate_names(certificate: dict[str, Any]) -> list[str]:
    """Return the host names and addresses of a certificate; its common name if there are none (RFC 6125)."""
    alternatives = [
        _plain(value)
        for kind, value in certificate.get("subjectAltName", ())
        if kind in ("DNS", "IP Address")
    ]
    common = [
        _plain(value)
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    return alternatives or common


def peer_mismatch(names: PeerNames | None, session: ssl.SSLObject | None) -> str:
    """Return why the certificate at the other end of this session is not taken; "" if it is."""
    if names is None or session is None:
        return ""
    der = session.getpeercert(binary_form=True)
    return names.describe_mismatch(session.getpeercert() or {}, der or b"")


def parse_peer_names(text: str) -> PeerNames:
    """Return the names of a list: host names, also as Slurm writes them (``node[0-3]``), ``*.DOMAIN``,
    addresses, and fingerprints (``sha256:HEX``, with or without colons).

    Raises:
        PeerNamesError: the list is empty, or an entry is none of these.
    """
    try:
        entries = [_plain(entry) for entry in expand_hostlist(text)]
    except HostlistError as error:
        raise PeerNamesError(str(error)) from None
    names, fingerprints = set(), set()
    for entry in entries:
        fingerprint = _FINGERPRINT.fullmatch(entry)
        if fingerprint is not None:
            fingerprints.add(fingerprint[1].replace(":", ""))
        elif _NAME.fullmatch(entry) is not None or _is_address(entry):
            names.add(entry)
        else:
            raise PeerNamesError(
                f'"{entry[:80]}" is no name of a host, no address and no sha256:HEX'
            )
    if not entries:
        raise PeerNamesError("it names no host")
    return PeerNames(frozenset(names), frozenset(fingerprints))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _plain(name: str) -> str:
    """Return a name or an address as it is compared."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower().rstrip(".")
