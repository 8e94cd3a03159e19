"""IPv6 on the hosts of a bed, which have addresses of IPv4 alone otherwise."""

from __future__ import annotations

from testbed import links
from testbed.bed import Bed

PREFIX = "fd77::"
_OFF = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
"""Of the network namespace of who writes; sysctl, which writes it too, is not on everybody's PATH."""


def both(bed: Bed, *, without: tuple[str, ...] = ()) -> None:
    """Gives every host an address of IPv6 too, and every name both, on all hosts; ``without`` are hosts where
    IPv6 is switched off, and who do not know it by their files."""
    known = {host: f"{PREFIX}{i:x}" for i, host in enumerate(bed.hosts, 1)}
    lines = "".join(f"{address}\t{host}\n" for host, address in known.items())
    for host, address in known.items():
        if host in without:
            bed.run(host, "sh", "-c", f"echo 1 >{_OFF}")
        else:
            words = ["ip", "-6", "address", "add", f"{address}/64", "dev", "eth0", "nodad"]
            links.inside(bed.first(host), words)
        with bed.path(host, "/run/bed/hosts").open("a") as file:
            file.write(lines)
