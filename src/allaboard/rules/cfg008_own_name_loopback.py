"""This host's own name is a loopback address in its hosts file.

## Why it matters
Debian and Ubuntu write `127.0.1.1 HOSTNAME` into /etc/hosts. Gloo looks up the host's own name to find the
address that it offers to its peers, and offers 127.0.1.1: the peers connect to themselves, and are refused
or hang, whatever timeout was set. It matters only with several hosts.

## What to do
Name the interface (`export GLOO_SOCKET_IFNAME=eth0`), or give the name its routable address in /etc/hosts.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import count_hosts, own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, LocalHost, Severity
from allaboard.facts.address import is_this_host_alone
from allaboard.facts.configuration.config_facts import sample_config_facts

_INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def check(facts: ConfigFacts) -> Iterator[Claim]:
    host = facts.host
    if host is None or count_hosts(facts.spec) < 2 or facts.spec.framework == "tensorflow":
        return
    if facts.is_set(_INTERFACE_VARIABLES[0]):
        return
    bad = [a for a in host.named if is_this_host_alone(a)]
    if not bad or len(bad) < len(host.named):
        return
    names = [i for i in host.interfaces if i != "lo" and not i.startswith(("docker", "veth", "br"))]
    fix = f"export GLOO_SOCKET_IFNAME={shlex.quote(names[0])}" if names else "edit /etc/hosts"
    yield Claim(
        summary=f"this host's name {host.name} is {bad[0]} in /etc/hosts: gloo would offer that "
        "address to the other hosts",
        who=own_member(facts.spec),
        evidence=(
            Evidence(f"{bad[0]} {host.name}", "/etc/hosts"),
            Evidence(", ".join(host.addresses) or "none", "routable addresses here"),
        ),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


_DEBIAN = LocalHost(
    name="node1", named=("127.0.1.1",), interfaces=("eth0", "lo"), addresses=("10.0.0.5",)
)

RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a job on two nodes, and a Debian host that has its own name at 127.0.1.1": (
            sample_config_facts(master_addr="node0", nnodes="2", host=_DEBIAN),
            "this host's name node1 is 127.0.1.1 in /etc/hosts: gloo would offer that address to "
            "the other hosts",
        )
    },
    silent_on={
        "a Debian host that has its own name at 127.0.1.1, in a job on one node": sample_config_facts(
            master_addr="node0", nnodes="1", host=_DEBIAN
        ),
        "GLOO_SOCKET_IFNAME chooses the interface `eth0`": sample_config_facts(
            master_addr="node0", nnodes="2", host=_DEBIAN, variables={"GLOO_SOCKET_IFNAME": "eth0"}
        ),
    },
)
