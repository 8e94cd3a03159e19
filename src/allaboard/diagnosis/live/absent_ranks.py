"""What shows that a rank of PyTorch or JAX has not come, and the command that starts it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.configuration import resolve
from allaboard.diagnosis.live.start_commands import command_for_rank
from allaboard.facts import Address, Evidence, Finding, HostLook, Present


def explain_absent_rank(
    finding: Finding, looks: Sequence[HostLook], ranks: Sequence[Present]
) -> Finding:
    """Return a finding on ranks without a process, with what their meeting address shows and the command that
    starts the first of them."""
    if not ranks:
        return finding
    rank = finding.who[0].rank
    evidence = finding.evidence
    address = resolve(ranks[0].stated).meeting_address
    if rank == 0 and address is not None and (host := _host_without_listener(address, looks)):
        shown = Evidence(
            f"nothing listens at {address}, where rank 0 serves, on {host}", "TCP sockets"
        )
        evidence = (shown, *evidence)
    # A rank that expects a smaller world is no example: the missing one would not be in its world.
    example = next((p for p in ranks if resolve(p.stated).world_size > rank), None)
    command = command_for_rank(rank, example) if example is not None else ""
    return msgspec.structs.replace(
        finding,
        evidence=evidence,
        fix=f"start rank {rank}: {command}" if command else finding.fix,
    )


def _host_without_listener(address: Address, looks: Sequence[HostLook]) -> str:
    """Return the host that was looked at, has this address, and on which nothing listens there; "" for
    none."""
    for look in looks:
        if address.host in look.addresses and not any(
            Address.from_endpoint(a).port == address.port for a in look.listeners
        ):
            return look.host
    return ""
