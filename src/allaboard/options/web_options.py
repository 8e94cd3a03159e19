"""The option ``--web``: where the page of a run is served, and the socket and the process for it."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from allaboard.faces.web.page_access import LOOPBACK, is_loopback, make_token, page_url
from allaboard.facts import Address
from allaboard.options.option_values import DEFAULT_PAGE_PORT
from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.cluster.transport.tls import TlsFiles
    from allaboard.faces.web.page_server import PageSettings

INHERITED = "fd://"
"""Beginning of the value that names a listening socket which was inherited."""
ANYWHERE = frozenset(["0.0.0.0", "::"])
"""Addresses that stand for all of a host's."""
LOOPBACK_NAMES = frozenset([LOOPBACK, "localhost", "::1"])


class PagePort(NamedTuple):
    """A socket that listens, and what a browser needs to be let in."""

    listener: socket.socket
    """The socket."""
    token: str
    """The token."""
    url: str
    """URL for people, with the token."""
    is_tls: bool
    """True if the server has to use the certificates."""

    def settings(self, tls: TlsFiles | None) -> PageSettings:
        """Return what the page server is made with."""
        from allaboard.faces.web.page_server import PageSettings

        context = None
        if self.is_tls and tls is not None:
            # A browser has no certificate of the job; the token lets it in.
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(tls.cert, tls.key)
        is_local = is_loopback(self.listener.getsockname()[0])
        return PageSettings(
            self.listener, self.token, LOOPBACK_NAMES if is_local else frozenset(), context
        )


def open_page_port(text: str, tls: TlsFiles | None) -> PagePort:
    """Return a listening socket for the value of ``--web``.

    Raises:
        UsageError: aiohttp is not installed, the value is malformed, or the port is taken.
    """
    if find_spec("aiohttp") is None:
        raise_usage_error(
            "--web: the page needs aiohttp, which is not installed: pip install 'allaboard[web]'"
        )
    host, port = _parse_address(text)
    try:
        listener = _listen(host, DEFAULT_PAGE_PORT if port is None else port)
    except OSError as error:
        if port is None and error.errno == errno.EADDRINUSE:
            listener = _listen(host, 0)
        else:
            raise_usage_error(_failure(host, port, error))
    # The process that ends the workers is forked from this one, and would hold the port.
    os.register_at_fork(after_in_child=listener.close)
    token = make_token()
    is_tls = tls is not None and not is_loopback(host)
    shown_host = os.uname().nodename if host in ANYWHERE else host
    url = page_url(shown_host, listener.getsockname()[1], token, is_tls)
    return PagePort(listener, token, url, is_tls)


def inherit_page_port(text: str, token: str, is_tls: bool) -> PagePort:
    """Return the socket that ``fd://N`` names."""
    listener = socket.socket(fileno=int(text.removeprefix(INHERITED)))
    return PagePort(listener, token, "", is_tls)


def _parse_address(text: str) -> tuple[str, int | None]:
    """Return host and port; None for the default port."""
    if not text:
        return LOOPBACK, None
    address = Address(LOOPBACK, text) if text.isdecimal() else Address.from_endpoint(text)
    host, port = address.host, address.port
    if not host or not port.isdecimal() or int(port) > 65535:
        raise_usage_error(
            f"--web {text}: expected a port or HOST:PORT, e.g. --web 8701, or --web=0.0.0.0:8701"
        )
    return host, int(port)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    return listener


def _failure(host: str, port: int | None, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"--web {port}: port {port} is taken on {host}; to see by whom: ss -ltnp 'sport = :{port}'; "
            "or let a free one be chosen: --web"
        )
    if error.errno == errno.EACCES:
        return f"--web {port}: only root may listen on port {port}; choose one above 1023"
    reason = error.strerror or str(error)
    return f"--web: cannot listen on {host}:{port}: {reason.lower()}"
