"""A cluster of several hosts has an address that means "this host" to each of them.

## Why it matters
`localhost`, `127.0.0.1`, `::1` and `0.0.0.0` are a different machine for every reader. Each member connects
to itself, finds no one or the wrong one, and waits; PyTorch and TensorFlow both stay silent about it. On
one host such addresses are right, so a cluster on one host is not reported.

## What to do
Use the name or address by which the *other* hosts reach that host: `hostname -I` prints it there.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.configuration.spec import count_hosts, own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, LocalHost, Severity, Value, Who
from allaboard.facts.address import DEFAULT_PORT, is_this_host_alone, join_host_port, parse_address
from allaboard.facts.configuration.config_facts import sample_config_facts


def check(facts: ConfigFacts) -> Iterator[Claim]:
    spec = facts.spec
    if spec.cluster:
        yield from _check_cluster(facts)
        return
    count = count_hosts(spec)
    # Some operators give rank 0 itself localhost, and the others its name.
    is_first_rank = facts.kind == "environment" and spec.number("rank") == 0
    if facts.own_scripts > 1:
        yield from _check_own_meeting_place(facts)
        return
    if count < 2 or is_first_rank or facts.one_host:
        return
    for field in ("master_addr", "rdzv_endpoint", "coordinator"):
        value = spec.values.get(field)
        if value is None or not is_this_host_alone(parse_address(value.text).host):
            continue
        name = value.origin.name or field
        yield Claim(
            summary=f"{name} is {value.text}, which is another machine on each of the {count} hosts",
            who=own_member(spec),
            evidence=(value.evidence, *_node_count_evidence(facts)),
            # The address of any other rank would be just as wrong.
            fix=_corrected_assignment(value, facts.host if spec.number("rank") == 0 else None),
            where=value.origin.editor_place,
        )
        return


def _node_count_evidence(facts: ConfigFacts) -> tuple[Evidence, ...]:
    nodes = facts.spec.values.get("nnodes") or facts.spec.values.get("world_size")
    return (nodes.evidence,) if nodes else ()


def _corrected_assignment(value: Value, host: LocalHost | None) -> str:
    port = parse_address(value.text).port
    name = "HOST-OF-RANK-0" if host is None or not host.addresses else host.addresses[0]
    right = join_host_port(name, port) if port else name
    return value.origin.assignment_of(right)


def _check_cluster(facts: ConfigFacts) -> Iterator[Claim]:
    spec = facts.spec
    if count_hosts(spec) < 2:
        yield from _check_own_scripts(facts)
        return
    reachable_tasks = [
        (j, i) for j, i, v in spec.tasks() if not is_this_host_alone(parse_address(v.text).host)
    ]
    for job, index, value in spec.tasks():
        parsed = parse_address(value.text)
        if not is_this_host_alone(parsed.host) or not parsed.host:
            continue
        remote_tasks = ", ".join(f"{j} {i}" for j, i in reachable_tasks[:3]) + (
            ", …" if len(reachable_tasks) > 3 else ""
        )
        own_addresses = facts.host.addresses if facts.host is not None else ()
        name = (
            own_addresses[0]
            if own_addresses and own_member(spec) == (Who(job=job, index=index),)
            else "ITS-HOST-NAME"
        )
        yield Claim(
            summary=f"{job} {index} has the address {parsed.host}: {remote_tasks} on other hosts cannot "
            "reach it",
            who=(Who(job=job, index=index),),
            evidence=(value.evidence,),
            fix=f'"{join_host_port(name, parsed.port or DEFAULT_PORT["tensorflow"])}"',
            where=value.origin.editor_place,
        )


def _check_own_scripts(facts: ConfigFacts) -> Iterator[Claim]:
    """Report loopback addresses in a script that is one member by itself: the others have scripts of their
    own, and may have hosts of their own."""
    tasks = list(facts.spec.tasks())
    member = own_member(facts.spec)
    is_tf_config = facts.part_of_source("tf_config") is not None
    if not facts.own_scripts or not is_tf_config or not member or len(tasks) < 2:
        return
    job, index, value = tasks[0]
    port = parse_address(value.text).port
    kept_port = DEFAULT_PORT["tensorflow"] if port in ("", "0") else port
    host = parse_address(value.text).host
    yield Claim(
        summary=f"all members have the address {host}, and each has a script of its own: on several machines "
        "each script means its own machine",
        who=member,
        evidence=(value.evidence,),
        fix=f'"HOST-OF-{job.upper()}-{index}:{kept_port}"   # and so for the others, unless all scripts '
        "run on one machine",
        severity=Severity.WARNING if facts.own_scripts > 1 else Severity.INFO,
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _check_own_meeting_place(facts: ConfigFacts) -> Iterator[Claim]:
    """Report a loopback meeting place in scripts of which each is one rank by itself."""
    values = (facts.spec.values.get(f) for f in ("master_addr", "coordinator"))
    value = next((v for v in values if v is not None), None)
    if value is None or not is_this_host_alone(parse_address(value.text).host):
        return
    parsed = parse_address(value.text)
    name = join_host_port("HOST-OF-RANK-0", parsed.port) if parsed.port else "HOST-OF-RANK-0"
    yield Claim(
        summary=f"all ranks meet at {parsed.host}, and each has a script of its own: on several machines "
        "each script means its own machine",
        who=own_member(facts.spec),
        evidence=(value.evidence,),
        fix=f"{name}   # in place of {value.text}, unless all scripts run on one machine",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=value.origin.editor_place,
    )


def _own_rank(count: int, address: str) -> ConfigFacts:
    facts = sample_config_facts("python", rank="0", world_size="2", master_addr=address)
    return msgspec.structs.replace(facts, own_scripts=count)


def _own_script(count: int, *addresses: str) -> ConfigFacts:
    facts = sample_config_facts("python", cluster={"worker": list(addresses)}, task=("worker", 0))
    return msgspec.structs.replace(facts, own_scripts=count)


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "one of two workers has the address localhost": (
            sample_config_facts(
                cluster={"worker": ["localhost:2222", "10.0.0.2:2222"]}, task=("worker", 0)
            ),
            "worker 0 has the address localhost: worker 1 on other hosts cannot reach it",
        ),
        "a script for each worker, and all addresses are localhost": (
            _own_script(2, "localhost:2222", "localhost:2223"),
            "all members have the address localhost, and each has a script of its own: on several machines "
            "each script means its own machine",
        ),
        "a script for each rank, and MASTER_ADDR is localhost in all of them": (
            _own_rank(2, "localhost"),
            "all ranks meet at localhost, and each has a script of its own: on several machines each script "
            "means its own machine",
        ),
        "torchrun on two nodes with MASTER_ADDR=127.0.0.1": (
            sample_config_facts(master_addr="127.0.0.1", nnodes="2"),
            "MASTER_ADDR is 127.0.0.1, which is another machine on each of the 2 hosts",
        ),
    },
    silent_on={
        "one script for all workers, whose addresses are all localhost": _own_script(
            0, "localhost:2222", "localhost:2223"
        ),
        "a script for each rank, and MASTER_ADDR is 10.0.0.4 in all of them": _own_rank(
            2, "10.0.0.4"
        ),
        "a script for the only worker of a cluster, at localhost": _own_script(1, "localhost:2222"),
        "all workers are on localhost, with different ports": sample_config_facts(
            cluster={"worker": ["localhost:2222", "localhost:2223"]}, task=("worker", 0)
        ),
        "MASTER_ADDR=localhost for rank 0 itself, in a job on two nodes": sample_config_facts(
            master_addr="localhost", nnodes="2", rank="0"
        ),
        "MASTER_ADDR=localhost in a job whose 4 ranks run on one node": sample_config_facts(
            master_addr="localhost", world_size="4", local_world_size="4"
        ),
        "a shell script that starts both nodes of its job on one host": msgspec.structs.replace(
            sample_config_facts("shell", master_addr="localhost", nnodes="2"), one_host=True
        ),
    },
)
