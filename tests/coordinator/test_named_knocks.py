"""Who hangs up where TLS begins is named once it has said who it is."""

from __future__ import annotations

from allaboard.coordinator.multi_host_state import MultiHostState
from allaboard.facts import Knock
from allaboard.protocol.events import StrangerConnected

BARE = "a worker without a certificate of this job (it hangs up where TLS begins)"
NAMED = "does not trust the certificate that is shown here: expired"


def test_the_name_stays() -> None:
    crossing = MultiHostState("h0", joined=True)
    bare = Knock(peer="10.0.0.3", kind="no-tls", said=BARE, knocked_at=1.0)
    named = Knock(peer="10.0.0.3", kind="no-tls", said=NAMED, host="h2", rank=2, knocked_at=2.0)
    for knock in (bare, named, bare, named):
        crossing.apply_event(StrangerConnected(knock=knock))
    (kept,) = crossing.view_fields()["knocks"]
    assert (kept.claimed_member, kept.said, kept.times) == ("h2 (rank 2)", NAMED, 4)
