"""The ranks meet through a service that does not forward the port they use.

## Why it matters
An ordinary service forwards only the ports that it lists, each to its `targetPort`. If MASTER_PORT is
another one, connections to the service are silently dropped. A headless service forwards nothing, so any
port of the pod is reachable, and nothing is reported.

## What to do
List MASTER_PORT in the service, with the port that rank 0 opens as its target.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import (
    Claim,
    ManifestFacts,
    Origin,
    Role,
    Service,
    ServicePort,
    Value,
    Workload,
)


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        for role in workload.roles:
            host, port = role.env.get("MASTER_ADDR"), role.env.get("MASTER_PORT")
            if host is None or port is None or port.integer is None:
                continue
            name = host.text.partition(".")[0]
            service = next((s for s in facts.services if s.name == name), None)
            if service is None or service.headless or not service.ports:
                continue
            claim = _check_service(service, port)
            if claim is not None:
                yield claim


def _check_service(service: Service, port: Value) -> Claim | None:
    listed = next((p for p in service.ports if p.port.integer == port.integer), None)
    if listed is None:
        numbers = ", ".join(p.port.text for p in service.ports)
        return _claim(
            f"MASTER_PORT is {port.text}, but the service {service.name!r} forwards {numbers}",
            port,
            service.ports[0].port,
            f"- port: {port.text}\n  targetPort: {port.text}",
        )
    target = listed.target
    if target is None or target.integer is None or target.integer == port.integer:
        return None
    return _claim(
        f"the service {service.name!r} forwards port {port.text} to {target.text}, but rank 0 listens on "
        f"{port.text}",
        port,
        target,
        f"targetPort: {port.text}",
    )


def _claim(summary: str, port: Value, service_value: Value, fix: str) -> Claim:
    return Claim(
        summary=summary,
        evidence=(port.evidence, service_value.evidence),
        fix=fix,
        where=service_value.origin.editor_place or port.origin.editor_place,
    )


def _facts(port: str, target: str = "", headless: bool = False) -> ManifestFacts:
    origin = Origin(key="spec.ports.port", file="job.yaml", line=8, column=11)
    listed = ServicePort(port=Value(port, origin), target=Value(target, origin) if target else None)
    role = Role(
        name="",
        replicas=Value("2"),
        env={"MASTER_ADDR": Value("master"), "MASTER_PORT": Value("29500")},
    )
    return ManifestFacts(
        workloads=(Workload(kind="Job", name="train", roles=(role,)),),
        services=(Service(name="master", headless=headless, ports=(listed,)),),
    )


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "the service forwards another port than MASTER_PORT": (
            _facts("23456"),
            "MASTER_PORT is 29500, but the service 'master' forwards 23456",
        ),
        "the service forwards MASTER_PORT to another port of the pod": (
            _facts("29500", "8080"),
            "the service 'master' forwards port 29500 to 8080, but rank 0 listens on 29500",
        ),
    },
    silent_on={
        "the service forwards MASTER_PORT to the same port": _facts("29500", "29500"),
        "a headless service, which forwards no port": _facts("23456", headless=True),
        "the service forwards MASTER_PORT to a port that is given by name": _facts("29500", "rdzv"),
    },
)
