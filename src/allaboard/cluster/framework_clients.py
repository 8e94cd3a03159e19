"""Decides whether a caller is a member of the job that runs without allaboard. Pure but for its memory.

For such a member the framework's port is freed before the roll call is complete, so its client must show what
the framework's own client shows: its first bytes, and that it comes again when it is hung up on, as the
clients of PyTorch and gRPC do within seconds. It should come from a host of the job, where the addresses of
all are known; one from elsewhere may still be a member behind a translated address (NAT, a service of
Kubernetes), so it must only keep coming for longer. A job with a secret or certificates has no such members,
unless its user allows them: bytes that anybody may send must not end what the secret protects.
"""

from __future__ import annotations

from collections.abc import Callable

from allaboard.facts import Knock
from allaboard.protocol.events import StrangerConnected

FRAMEWORK_CLIENT_KINDS = {"torch": "store", "tensorflow": "grpc", "jax": "grpc"}
"""Kind of stranger (see `protocol_sniffer`) that a framework's own client is."""
MIN_KNOCKS = 2
"""Connections from one address that make a client: a scanner sends its probe once."""
MIN_FOREIGN_S = 10.0
"""Seconds for which a client keeps coming that comes from no known address of the job."""
MAX_ADDRESSES = 4096
"""Addresses that are remembered."""


class FrameworkClients:
    """The callers so far.

    ``are_admitted``: members without allaboard may belong to the job. ``job_addresses``: see
    `JobAddresses.known_addresses`.
    """

    def __init__(
        self,
        are_admitted: bool = True,
        job_addresses: Callable[[], frozenset[str] | None] = frozenset,
    ) -> None:
        self._are_admitted = are_admitted
        self._job_addresses = job_addresses
        self._knocks: dict[tuple[str, str], tuple[int, float]] = {}
        """Number of connections, and the time of the first (s), by address and kind."""

    def stranger_event(self, framework: str, knock: Knock) -> StrangerConnected:
        """Return the event for a stranger; a client of this framework may belong to such a member."""
        is_client = self._are_admitted and knock.kind == FRAMEWORK_CLIENT_KINDS.get(framework)
        return StrangerConnected(knock=knock, is_plain_client=is_client and self._persists(knock))

    def _persists(self, knock: Knock) -> bool:
        """Return True if this client has come as often, and for as long, as a member would."""
        key = knock.peer, knock.kind
        times, first = self._knocks.get(key, (0, knock.knocked_at))
        if times or len(self._knocks) < MAX_ADDRESSES:
            self._knocks[key] = times + 1, first
        if times + 1 < MIN_KNOCKS:
            return False
        addresses = self._job_addresses()
        if addresses is None:
            return False  # they will be known when it comes again
        is_of_job = not addresses or knock.peer in addresses
        return is_of_job or knock.knocked_at - first >= MIN_FOREIGN_S
