"""Serves metrics to scrapers, each in a thread of its own, with bounds on their number and their time."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

SCRAPE_TIMEOUT_S = 10.0
"""Seconds that a scraper may take to ask, and to take each part of the answer."""
MAX_SCRAPES = 16
"""Scrapes at a time; further ones are closed at once."""
MAX_LINGER_S = 60.0
"""Longest time that the metrics of a run that has ended are served on, so that its outcome is scraped."""
SCRAPE_INTERVALS = 1.5
"""How many of the scraper's intervals its next scrape is waited for."""


class _Handler(WSGIRequestHandler):
    timeout = SCRAPE_TIMEOUT_S

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, family: int) -> None:
        self.address_family = family
        self._free = threading.BoundedSemaphore(MAX_SCRAPES)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's own asks a name server for this host's name
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), port
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that goes away, or is too slow, is its own affair."""


class MetricsServer:
    """Listens from its construction on. Raises OSError if it cannot."""

    def __init__(
        self, host: str, port: int, registry: Any, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self.scraped_at: list[float] = []
        """Times of the last two scrapes (s)."""
        app = make_wsgi_app(registry)

        def counted(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            self.scraped_at = [*self.scraped_at[-1:], self._now()]
            answer: Iterable[bytes] = app(environ, start_response)
            return answer

        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self._server = _Server(host, port, addresses[0][0])
        self._server.set_app(counted)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address for a scraper."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}/metrics"

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


def linger_s(
    scraped_at: Iterable[float], ended_at: float, max_linger_s: float = MAX_LINGER_S
) -> float:
    """Return for how many seconds after its end a run is still served: until the scraper's next scrape is
    due, but not if nobody scrapes it."""
    times = list(scraped_at)
    if not times or ended_at - times[-1] > max_linger_s:
        return 0.0
    interval_s = times[-1] - times[-2] if len(times) > 1 else max_linger_s
    return max(0.0, min(max_linger_s, times[-1] + SCRAPE_INTERVALS * interval_s - ended_at))


def listen_failure(host: str, port: int, error: OSError) -> str:
    """Return why nothing listens at a port, and what to do, as the end of a sentence."""
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is taken on {host}; it is tried again until it is free. By whom: "
            f"ss -ltnp 'sport = :{port}'"
        )
    if error.errno == errno.EACCES:
        return f"only root may listen on port {port}; choose one above 1023"
    return (error.strerror or str(error)).lower()
