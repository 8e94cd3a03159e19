"""Decides who may read the page: addresses, the token, and the headers of every answer. Pure.

Every user of a machine reaches its loopback addresses, so a token is needed there, too. It is part of the URL
behind the ``#``, which a browser sends to nobody; the page's script sends it over the websocket.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection

LOOPBACK = "127.0.0.1"
TOKEN_NBYTES = 24
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer: nothing comes from elsewhere, and no text becomes code or markup."""


def make_token() -> str:
    """Return a new token."""
    return secrets.token_urlsafe(TOKEN_NBYTES)


def tokens_match(token: str, expected: str) -> bool:
    """Return True if the token is the expected one. The comparison takes as long for any token."""
    return hmac.compare_digest(token.encode(errors="replace"), expected.encode())


def page_url(host: str, port: int, token: str, is_tls: bool = False) -> str:
    """Return the URL that a person opens."""
    scheme = "https" if is_tls else "http"
    return f"{scheme}://{_bracketed(host)}:{port}/#token={token}"


def is_loopback(host: str) -> bool:
    """Return True if only this machine reaches the address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def is_same_origin(origin: str | None, host_header: str, is_tls: bool) -> bool:
    """Return True if the page that opens a websocket came from this server. Browsers always say from where it
    came; other programs need not."""
    scheme = "https" if is_tls else "http"
    return origin is None or origin == f"{scheme}://{host_header}"


def is_expected_host(host_header: str, names: Collection[str]) -> bool:
    """Return True if the browser asked for one of these names; a foreign name that was made to lead here (DNS
    rebinding) is refused. No names: any."""
    name = host_header.rpartition(":")[0] if ":" in host_header else host_header
    name = host_header if host_header.endswith("]") else name
    return not names or name.strip("[]").lower() in names


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
