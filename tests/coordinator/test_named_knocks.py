"""Who hangs up where TLS begins is named once it has said who it is."""

from __future__ import annotations

from allaboard.coordinator.crossing import Crossing
from allaboard.coordinator.events import Knocked
from allaboard.facts import Knock

BARE = "a worker without a certificate of this job (it hangs up where TLS begins)"
NAMED = "h2 (rank 2): does not trust the certificate that is shown here: expired"


def test_the_name_stays() -> None:
    crossing = Crossing("h0", joined=True)
    for said in (BARE, NAMED, BARE, NAMED):
        crossing.take(Knocked(knock=Knock(peer="10.0.0.3", kind="no-tls", said=said, at=1.0)))
    (knock,) = crossing.facts()["knocks"]
    assert knock.said == NAMED and knock.named and knock.times == 4
