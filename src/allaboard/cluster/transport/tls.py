"""TLS for the meeting, where the user has certificates: each side shows one, each checks the other's.

What is checked is that the job's own authority signed it (``ca``), not the name in it: hosts of a job meet at
addresses that launchers hand out. The plain greeting stays, since it is what tells the roll call from
other programs; TLS begins right after the banner.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

TLS_HANDSHAKE_TIMEOUT_S = 5.0
"""Seconds for the handshake of TLS."""
HANDSHAKE_TURNS = 3
"""Turns of each side in a whole handshake; RFC 8446, 2."""


class TlsFiles(NamedTuple):
    """The files: our certificate, its key, and the authority that signed those of all hosts (PEM)."""

    cert: Path
    key: Path
    ca: Path

    def make_context(self, server: bool) -> ssl.SSLContext:
        """Raises OSError (ssl.SSLError is one) where a file is missing or is not what it should be."""
        side = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.cert, self.key, password=_no_passphrase)
        context.load_verify_locations(self.ca)
        return context


def certificate_fault(files: TlsFiles) -> str:
    """Why every other host of the job will refuse this one's certificate, where its own authority and clock
    say so already: a handshake with itself, in memory, in both roles. "" where nothing is wrong. Raises
    OSError as `Tls.context` does."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = files.make_context(server=False).wrap_bio(to_client, to_server)
    server = files.make_context(server=True).wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server) * HANDSHAKE_TURNS:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue  # it is the other's turn
        except ssl.SSLCertVerificationError as error:
            return error.verify_message
        except ssl.SSLError as error:
            return error.reason or str(error)
    return ""


def is_key_mismatch(error: OSError) -> bool:
    """Whether `Tls.context` failed since certificate and key are not of each other."""
    return getattr(error, "reason", "") == "KEY_VALUES_MISMATCH"


def _no_passphrase() -> str:
    """No passphrase is asked for: an agent has nobody to ask. The key is then told to be unusable."""
    return ""


def alert_text(reason: str | None) -> str:
    """What the other side holds against our certificate, by the reason of an SSLError: its alert (RFC 8446,
    6.2) in small letters, e.g. "certificate expired"; "" where that is none."""
    _, separator, alert = (reason or "").partition("ALERT_")
    return alert.lower().replace("_", " ") if separator else ""
