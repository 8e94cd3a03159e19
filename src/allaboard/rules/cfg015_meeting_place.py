"""The address where the ranks meet is malformed: MASTER_ADDR, MASTER_PORT, a rendezvous endpoint.

## Why it matters
At the start, every rank but the first does nothing but connect there. With a scheme, a port inside
MASTER_ADDR, a placeholder, or a port that is not a number, all of them fail or wait; those that wait are
silent.

## What to do
Set MASTER_ADDR to a host name or an address alone (IPv6 without brackets, a link-local one with its
interface: `fe80::1%eth0`), and MASTER_PORT to a number from 1 to 65535, the same on every rank. `getent
hosts NAME` shows whether a host can resolve the name. Kubernetes sets NAME_PORT in every pod for a Service
called NAME: with one called `master`, set MASTER_PORT in the pod, or `enableServiceLinks: false`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Value, address, sample_config_facts

_SERVICE_PORT = re.compile(r"tcp://\S+:(?P<port>\d{1,5})")
"""The value of SERVICE_PORT, by which Kubernetes tells every pod of a Service."""


def check(facts: ConfigFacts) -> Iterator[Claim]:
    # URLs, flags and Ray's address are checked by their readers.
    for part in facts.parts:
        if part.source in ("init_url", "torchrun", "ray"):
            continue
        # An empty value is set, but to something that only a run can tell.
        values = {field: value for field, value in part.values.items() if value.text}
        host, port = values.get("master_addr"), values.get("master_port")
        if host is not None:
            yield from _check_host(facts, host, port)
        if port is not None:
            yield from _check_port(facts, port)
        coordinator = values.get("coordinator")
        if coordinator is not None:
            problem = address.address_fault(coordinator.text, port=1234)
            if problem is not None:
                yield _claim(facts, coordinator, problem[0], problem[1])


def _check_host(facts: ConfigFacts, host: Value, port: Value | None) -> Iterator[Claim]:
    text = host.text
    bare = address.parse_address(text)
    if re.fullmatch(r"[0-9A-Fa-f:.%\w]+", text) and text.count(":") > 1:
        if address.why_unusable(text):
            yield _claim(
                facts, host, f"names no host: {address.why_unusable(text)}", "HOST-OF-RANK-0"
            )
        elif address.lacks_interface(text):
            yield _claim(facts, host, address.LINK_LOCAL, f"{text}%INTERFACE")
        return  # an IPv6 address, which MASTER_ADDR takes without brackets
    if re.fullmatch(r"\[[^]]*:[^]]*\]", text):
        yield _claim(facts, host, "has brackets, so PyTorch takes it for a name", text[1:-1])
        return
    if bare.port and not bare.scheme and port is not None:
        number = f" (and MASTER_PORT is {port.text})" if port.text != bare.port else ""
        yield _claim(facts, host, f"has a port in it{number}", bare.host)
        return
    if re.fullmatch(r"[\w.-]+@[\w.-]+", text):
        problem_text = "has a user's name before the address, as only ssh takes it"
        yield _claim(facts, host, problem_text, text.partition("@")[2])
        return
    problem = address.address_fault(text, port=29500, needs_port=False)
    if problem is not None:
        yield _claim(facts, host, problem[0], address.parse_address(problem[1]).host)


def _check_port(facts: ConfigFacts, port: Value) -> Iterator[Claim]:
    number = port.integer
    if (service := _SERVICE_PORT.fullmatch(port.text)) is not None:
        problem = "is what Kubernetes sets in every pod for a Service named master, and no number"
        yield _claim(facts, port, problem, service["port"])
    elif number is None:
        yield _claim(facts, port, "is not a number", "29500")
    elif not 0 < number < 65536:
        problem = "means any free port, which no other rank could know"
        yield _claim(facts, port, problem if not number else "is not from 1 to 65535", "29500")


def _claim(facts: ConfigFacts, value: Value, problem: str, correction: str) -> Claim:
    name = value.origin.name or "the meeting point"
    return Claim(
        summary=f"{name} {problem}: {value.text!r}",
        who=own_member(facts.spec),
        evidence=(value.evidence,),
        fix=value.origin.assignment_of(correction),
        where=value.origin.editor_place,
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "MASTER_ADDR begins with `tcp://`": (
            sample_config_facts(master_addr="tcp://node0", master_port="29500"),
            "MASTER_ADDR begins with tcp://; a task's address has no scheme: 'tcp://node0'",
        ),
        "MASTER_ADDR contains a user name, as for ssh": (
            sample_config_facts(master_addr="ubuntu@10.0.0.1", master_port="29500"),
            "MASTER_ADDR has a user's name before the address, as only ssh takes it: 'ubuntu@10.0.0.1'",
        ),
        "MASTER_ADDR contains a port": (
            sample_config_facts(master_addr="node0:29500", master_port="29500"),
            "MASTER_ADDR has a port in it: 'node0:29500'",
        ),
        "MASTER_PORT is above 65535": (
            sample_config_facts(master_addr="node0", master_port="129500"),
            "MASTER_PORT is not from 1 to 65535: '129500'",
        ),
        "MASTER_PORT is that of a Service of Kubernetes": (
            sample_config_facts(master_addr="master", master_port="tcp://10.96.12.7:29500"),
            "MASTER_PORT is what Kubernetes sets in every pod for a Service named master, and no number: "
            "'tcp://10.96.12.7:29500'",
        ),
        "MASTER_PORT is 0": (
            sample_config_facts(master_addr="node0", master_port="0"),
            "MASTER_PORT means any free port, which no other rank could know: '0'",
        ),
        "MASTER_ADDR is the broadcast address": (
            sample_config_facts(master_addr="255.255.255.255", master_port="29500"),
            "MASTER_ADDR 255.255.255.255 is the broadcast address, at which nobody listens: "
            "'255.255.255.255'",
        ),
        "MASTER_ADDR is a multicast address": (
            sample_config_facts(master_addr="239.1.2.3", master_port="29500"),
            "MASTER_ADDR 239.1.2.3 is a multicast address, which no host has: '239.1.2.3'",
        ),
        "MASTER_ADDR is an IPv6 address in brackets": (
            sample_config_facts(master_addr="[fd00::1]", master_port="29500"),
            "MASTER_ADDR has brackets, so PyTorch takes it for a name: '[fd00::1]'",
        ),
        "MASTER_ADDR is a link-local IPv6 address without its interface": (
            sample_config_facts(master_addr="fe80::1", master_port="29500"),
            "MASTER_ADDR is a link-local IPv6 address without its interface, which leads nowhere: 'fe80::1'",
        ),
        "JAX's coordinator is a link-local IPv6 address without its interface": (
            sample_config_facts(coordinator="[fe80::1]:1234", source="jax"),
            "COORDINATOR is a link-local IPv6 address without its interface, which leads nowhere: "
            "'[fe80::1]:1234'",
        ),
        "the address of JAX's coordinator has no port": (
            sample_config_facts(coordinator="node0", source="jax"),
            "COORDINATOR has no port: 'node0'",
        ),
    },
    silent_on={
        "a host name in MASTER_ADDR and a port in MASTER_PORT": sample_config_facts(
            master_addr="node0.train.svc", master_port="29500"
        ),
        "an address in 240.0.0.0/4, which some clouds use": sample_config_facts(
            master_addr="240.10.0.7", master_port="29500"
        ),
        "a host name that begins with ff, as multicast addresses do": sample_config_facts(
            master_addr="ff02.example", master_port="29500"
        ),
        "MASTER_ADDR is 0.0.0.0, which works on one host": sample_config_facts(
            master_addr="0.0.0.0", master_port="29500"
        ),
        "MASTER_ADDR is an IPv6 address without brackets": sample_config_facts(
            master_addr="fd00::1", master_port="29500"
        ),
        "MASTER_ADDR is a link-local IPv6 address with its interface": sample_config_facts(
            master_addr="fe80::1%eth0", master_port="29500"
        ),
        "JAX's coordinator is a link-local IPv6 address with interface and port": sample_config_facts(
            coordinator="[fe80::1%eth0]:1234", source="jax"
        ),
    },
)
