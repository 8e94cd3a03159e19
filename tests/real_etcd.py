"""A real etcd for a test, on loopback."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from allaboard.cluster.transport.tls import TlsFiles
from free_ports import free_port


class started:
    """An etcd of our own on two free ports of 127.0.0.1; with ``tls`` it has that certificate, and wants one
    of the same authority of every client."""

    def __init__(self, folder: Path, tls: TlsFiles | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self._port, peers = free_port(), free_port()
        self._tls = tls
        scheme = "http" if tls is None else "https"
        url, other = f"{scheme}://127.0.0.1:{self._port}", f"http://127.0.0.1:{peers}"
        words = ["etcd", "--data-dir", str(folder), "--name", "one", "--unsafe-no-fsync"]
        words += ["--listen-client-urls", url, "--advertise-client-urls", url]
        words += ["--listen-peer-urls", other, "--initial-advertise-peer-urls", other]
        words += ["--initial-cluster", f"one={other}"]
        if tls is not None:
            words += ["--cert-file", str(tls.cert), "--key-file", str(tls.key)]
            words += ["--trusted-ca-file", str(tls.ca), "--client-cert-auth"]
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen(words, stdout=self._log, stderr=self._log)

    def __enter__(self) -> int:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                if self._tls is None:
                    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                    opener.open(f"http://127.0.0.1:{self._port}/health", timeout=1).close()
                return self._port
            except OSError:
                assert time.monotonic() < end, "etcd does not come up"
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()
