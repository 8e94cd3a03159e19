"""Exceptions that say that the port on which a member should listen was already in use.

The wording is that of torch's TCPStore (torch/csrc/distributed/c10d/socket.cpp) and of TensorFlow's gRPC
server (tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc), as current releases print them.
"""

from __future__ import annotations

import re

from allaboard.facts import Address, Declared, Member, Raised

_STORE_PORT_TAKEN = re.compile(
    r"failed to listen on any local network address\. port: (\d+)\b.*?EADDRINUSE", re.DOTALL
)
_GRPC_NOT_STARTED = "Could not start gRPC server"


def find_taken_port(raised: Raised | None, declared: Declared | None = None) -> int | None:
    """Return the port that the framework could not bind; 0 if not known which, None for another exception.

    TensorFlow's exception does not name the port; it is that of the task in what the member ``declared``.
    """
    if raised is None:
        return None
    match = _STORE_PORT_TAKEN.search(raised.message)
    if match is not None:
        return int(match[1])
    if _GRPC_NOT_STARTED not in raised.message:
        return None
    # TensorFlow's server listens on its own task's address in the cluster.
    address = declared.cluster.get(f"{declared.job}:{declared.index}", "") if declared else ""
    port = Address.from_endpoint(address).port
    return int(port) if port.isdecimal() else 0


def failed_on_taken_port(member: Member) -> bool:
    """Return True if the member ended because its port was taken."""
    return find_taken_port(member.raised, member.declared) is not None
