"""The port of a member or of the meeting point is below 1024.

## Why it matters
Linux lets only root, or a process with CAP_NET_BIND_SERVICE, bind these ports. The member fails with
`Permission denied`, and its peers wait for it. As root in a container it works.

## What to do
Use a port above 1023.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Severity, Value, Who, whole_number
from allaboard.facts.address import DEFAULT_PORT, join_host_port, parse_address
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    if facts.kind == "manifest":
        return
    for job, index, value in facts.spec.tasks():
        address = parse_address(value.text)
        if _is_privileged(address.port):
            yield _claim(
                f"{job} {index} has port {address.port}, which only root may bind",
                (Who(job=job, index=index),),
                value,
                f'"{join_host_port(address.host, DEFAULT_PORT["tensorflow"])}"',
            )
            return
    port = facts.spec.values.get("master_port")
    if port is not None and _is_privileged(port.text.strip()):
        name = port.origin.variable or port.origin.flag or "the port"
        yield _claim(
            f"{name} is {port.text}, which only root may bind",
            own_member(facts.spec),
            port,
            f"export {name}=29500" if port.origin.variable else "29500",
        )


def _is_privileged(port: str) -> bool:
    return 0 < (whole_number(port) or 0) < 1024


def _claim(summary: str, members: tuple[Who, ...], value: Value, fix: str) -> Claim:
    return Claim(
        summary=summary,
        who=members,
        evidence=(value.evidence,),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "a worker with port 80": (
            sample_config_facts(cluster={"worker": ["a:80"]}, task=("worker", 0)),
            "worker 0 has port 80, which only root may bind",
        ),
        "MASTER_PORT is 443": (
            sample_config_facts(master_addr="a", master_port="443"),
            "MASTER_PORT is 443, which only root may bind",
        ),
    },
    silent_on={"MASTER_PORT is 1024": sample_config_facts(master_addr="a", master_port="1024")},
)
