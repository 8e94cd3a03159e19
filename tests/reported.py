"""Real jobs that report to real receivers on this host, for the tests of the faces beside a job."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

JOB = Path(__file__).parent / "zoo/jobs/torch_watched.py"
ALLABOARD = (sys.executable, "-m", "allaboard")
WITHIN_S = 400.0
"""A machine that others use too takes minutes to import a framework."""


@contextmanager
def running_job(
    folder: Path, *options: str, steps: int = 1_000_000, job: Path = JOB
) -> Iterator[subprocess.Popen[str]]:
    """Two ranks that train; what allaboard says is in FOLDER.err."""
    with (folder.parent / f"{folder.name}.err").open("w") as err:
        process = subprocess.Popen(
            [*ALLABOARD, "run", "--grace", "1", "--run-dir", str(folder), "-n", "2", "--warm", *options,
             str(job)],
            env={**os.environ, "STEPS": str(steps)},
            stdout=subprocess.DEVNULL, stderr=err, text=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_until(is_true: Callable[[], Any], within_s: float = WITHIN_S) -> None:
    """Wait until the function returns something true."""
    deadline = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def ranks_of(folder: Path) -> list[dict[str, Any]]:
    """The ranks of a job, as `watch` shows them."""
    looked = subprocess.run(
        [*ALLABOARD, "watch", str(folder), "--once", "--format", "json"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    with contextlib.suppress(ValueError):
        ranks: list[dict[str, Any]] = json.loads(looked.stdout).get("ranks", [])
        return ranks
    return []


def dashboard_queries() -> list[tuple[str, str]]:
    """The queries of the dashboard for Grafana, each with its panel's title, with Grafana's variables filled
    in."""
    dashboard = json.loads(
        (Path(__file__).parents[1] / "contrib/grafana/allaboard.json").read_text()
    )
    return [
        (panel["title"], target["expr"].replace("$run", ".+").replace("$__rate_interval", "10s"))
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A real HTTP server on this host: its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def receiving(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A real HTTP receiver: its address, and what came: paths, and JSON where there is some."""
    came: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_json = self.headers["Content-Type"].startswith("application/json")
            came.append({"path": self.path, **(json.loads(body) if is_json else {})})
            self._answer()

        def do_GET(self) -> None:
            came.append({"path": self.path})
            self._answer()

        def _answer(self) -> None:
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with serving(Handler) as address:
        yield address, came


@contextmanager
def answering(text: bytes | None) -> Iterator[str]:
    """A server that answers with this text; None: with nothing at all, ever."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if text is None:
                over.wait(60)
            else:
                with contextlib.suppress(OSError):
                    self.request.recv(65536)
                    self.request.sendall(text)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


@contextmanager
def refusing() -> Iterator[str]:
    """A port that nobody listens at; it is held, so that nobody else gets it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"
