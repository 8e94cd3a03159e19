"""etcd on one host of a bed, for all hosts."""

from __future__ import annotations

from testbed.bed import Bed
from testbed.requirements import program
from testbed.wait_until import listens, until

NEEDS = ("etcd",)
PORT = 2379


class Etcd:
    """``address`` is host:port for clients; its HTTP interface is below ``/v3/``."""

    def __init__(self, bed: Bed, host: str = "h0") -> None:
        """Raises CannotMake, or FileNotFoundError with the package to install."""
        self.address = f"{host}:{PORT}"
        url = f"http://{bed.addresses[host]}"
        words = [program("etcd"), "--data-dir", str(bed.folder / "etcd"), "--name", host]
        words += ["--listen-client-urls", f"{url}:{PORT}", "--listen-peer-urls", f"{url}:2380"]
        words += ["--advertise-client-urls", f"{url}:{PORT}"]
        words += ["--initial-advertise-peer-urls", f"{url}:2380"]
        words += ["--initial-cluster", f"{host}={url}:2380", "--unsafe-no-fsync"]
        server = bed.start(host, words)
        until(lambda: listens(bed.first(host), PORT), [server], "etcd", 10)
