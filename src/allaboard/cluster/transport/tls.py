"""TLS between agents, if the user has certificates: each side shows one and checks the other's.

The check is that the job's own authority (``ca``) signed it. The name in it is not that of the address, since
hosts of a job meet at addresses that launchers hand out; the user may say which names count (`peer_names`).
The greeting stays in plain text, since it tells the roll call from other
programs; TLS begins right after the banner.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

from allaboard.cluster.transport.peer_names import PeerNames, peer_mismatch

TLS_HANDSHAKE_TIMEOUT_S = 5.0
"""Seconds for the TLS handshake."""
HANDSHAKE_TURNS = 3
"""Turns of each side in a complete handshake; RFC 8446, section 2."""


class TlsFiles(NamedTuple):
    """The PEM files of this host."""

    cert: Path
    """Our certificate."""
    key: Path
    """Key of our certificate."""
    ca: Path
    """Authority that signed the certificates of all hosts of the job."""
    names: PeerNames | None = None
    """What the certificate of another agent must say; None if any of the authority's is taken."""

    def make_context(self, server: bool) -> ssl.SSLContext:
        """Return an SSL context for one side. Raises OSError (ssl.SSLError is one) for a missing or wrong
        file."""
        side = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.cert, self.key, password=_no_passphrase)
        context.load_verify_locations(self.ca)
        return context


def certificate_fault(files: TlsFiles) -> str:
    """Return why every other host of the job will refuse this one's certificate; "" if nothing is wrong.

    Found by a handshake with ourselves in memory, in both roles, by our own authority and clock. Raises
    OSError as `TlsFiles.make_context` does.
    """
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
    mismatch = peer_mismatch(files.names, client)
    return f"it has {mismatch}" if mismatch else ""


def is_key_mismatch(error: OSError) -> bool:
    """Return True if `TlsFiles.make_context` failed because certificate and key do not belong together."""
    return getattr(error, "reason", "") == "KEY_VALUES_MISMATCH"


def _no_passphrase() -> str:
    """Give an empty passphrase: an agent has nobody to ask, so an encrypted key fails instead of blocking."""
    return ""


def alert_text(reason: str | None) -> str:
    """Return the other side's objection to our certificate, from the reason of an SSLError.

    That is its TLS alert (RFC 8446, section 6.2) in lower case, e.g. "certificate expired"; "" if it is no
    alert.
    """
    _, separator, alert = (reason or "").partition("ALERT_")
    return alert.lower().replace("_", " ") if separator else ""
