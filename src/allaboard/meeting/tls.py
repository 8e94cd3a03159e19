"""TLS for the meeting, where the user has certificates: each side shows one, each checks the other's.

What is checked is that the job's own authority signed it (``ca``), not the name in it: hosts of a job meet at
addresses that launchers hand out. The plain greeting stays, since it is what tells the roll call from
other programs; TLS begins right after the banner.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

HANDSHAKE = 5.0
"""Seconds for the handshake of TLS."""


class Tls(NamedTuple):
    """The files: our certificate, its key, and the authority that signed those of all hosts (PEM)."""

    cert: Path
    key: Path
    ca: Path

    def context(self, server: bool) -> ssl.SSLContext:
        """Raises OSError (ssl.SSLError is one) where a file is missing or is not what it should be."""
        side = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
        made = ssl.SSLContext(side)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.check_hostname = False
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_cert_chain(self.cert, self.key, password=_unasked)
        made.load_verify_locations(self.ca)
        return made


def _unasked() -> str:
    """No passphrase is asked for: an agent has nobody to ask. The key is then told to be unusable."""
    return ""


def alert(reason: str | None) -> str:
    """What the other side holds against our certificate, by the reason of an SSLError: its alert (RFC 8446,
    6.2) in small letters, e.g. "certificate expired"; "" where that is none."""
    _, found, said = (reason or "").partition("ALERT_")
    return said.lower().replace("_", " ") if found else ""
