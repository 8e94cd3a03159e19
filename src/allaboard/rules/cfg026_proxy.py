"""gRPC would send its connections through a proxy: the members' addresses are not exempt.

## Why it matters
gRPC, which TensorFlow and JAX use to meet, sends its connections through `grpc_proxy`, `https_proxy` or
`http_proxy` (lower case only). A web proxy does not know the workers: the start hangs, or ends in
`DEADLINE_EXCEEDED`. PyTorch's store and gloo ignore these variables.

## What to do
Run `export no_proxy=` with the members' names, or unset the proxy for the training process.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, Severity
from allaboard.facts.address import is_this_host_alone, parse_address
from allaboard.facts.configuration.config_facts import sample_config_facts

_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Variables that gRPC's core reads, in its order."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    if facts.kind != "environment" or facts.spec.framework not in ("tensorflow", "jax"):
        return
    proxy = next((facts.variables[n] for n in _PROXIES if _is_set(facts, n)), None)
    if proxy is None:
        return
    exempt = next(
        (facts.variables[n] for n in ("no_grpc_proxy", "no_proxy") if _is_set(facts, n)), None
    )
    host_names = [parse_address(v.text).host for _, _, v in facts.spec.tasks()]
    coordinator = facts.spec.values.get("coordinator")
    host_names += [parse_address(coordinator.text).host] if coordinator is not None else []
    suffixes = [s.strip() for s in exempt.text.split(",")] if exempt is not None else []
    caught = [
        h
        for h in dict.fromkeys(host_names)
        if not is_this_host_alone(h) and not any(s and _is_exempt(h, s) for s in suffixes)
    ]
    if not caught:
        return
    name = proxy.origin.variable
    shown_proxy = re.sub(r"//[^@/]*@", "//***@", proxy.text)
    shown_hosts = ",".join(caught[:8])
    yield Claim(
        summary=f"{name} is set, and gRPC would send {caught[0]}"
        + (f" and {len(caught) - 1} more" if len(caught) > 1 else "")
        + " through that proxy",
        who=own_member(facts.spec),
        evidence=(
            Evidence(shown_proxy, name),
            Evidence(exempt.text if exempt is not None else "not set", "no_proxy"),
        ),
        fix=f"export no_proxy={shlex.quote(shown_hosts)}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
    )


def _is_set(facts: ConfigFacts, name: str) -> bool:
    return name in facts.variables and bool(facts.variables[name].text.strip())


def _is_exempt(host: str, suffix: str) -> bool:
    """Return True if gRPC may exempt the host: it compares ends of names; a range counts as a match."""
    return host.endswith(suffix.lstrip("*")) or suffix == "*" or "/" in suffix


def _facts(**variables: str) -> ConfigFacts:
    return sample_config_facts(
        cluster={"worker": ["w0:2222", "w1:2222"]},
        task=("worker", 0),
        framework="tensorflow",
        variables=variables,
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "`http_proxy` is set, and no worker is exempt": (
            _facts(http_proxy="http://proxy:3128"),
            "http_proxy is set, and gRPC would send w0 and 1 more through that proxy",
        )
    },
    silent_on={
        "`no_proxy` exempts all workers": _facts(
            http_proxy="http://proxy:3128", no_proxy="localhost,w0,w1"
        ),
        "HTTP_PROXY in capitals, which gRPC does not read": _facts(HTTP_PROXY="http://proxy:3128"),
        "a PyTorch job, which does not use gRPC": sample_config_facts(
            master_addr="a", framework="pytorch", variables={"http_proxy": "http://proxy:3128"}
        ),
    },
)
