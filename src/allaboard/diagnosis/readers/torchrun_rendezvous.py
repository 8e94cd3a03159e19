"""Exceptions that torchrun raises when its own rendezvous of hosts fails."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

_RAISED = r"torch\.distributed\.elastic\.rendezvous\.api\."
_SOURCE = "its wording from the source of PyTorch 2.13.0"

MESSAGES = (
    KnownMessage(
        key="RendezvousTimeoutError",
        pattern=_RAISED + r"RendezvousTimeoutError",
        rule="JOIN001",
        says="torchrun's rendezvous was not complete in time: fewer hosts came than --nnodes asks for",
        fix="start torchrun on every host, with the same --rdzv-id, --rdzv-endpoint and --nnodes; "
        "allaboard preflight, started as the job is, names who is missing",
        proves_not="which host: torchrun knows how many there are to be, not who",
        sample="torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        source=_SOURCE,
    ),
    KnownMessage(
        key="RendezvousConnectionError",
        pattern=_RAISED + r"RendezvousConnectionError",
        rule="JOIN007",
        says="torchrun did not reach the place where its hosts are to meet (--rdzv-endpoint)",
        fix="start torchrun on the host of the endpoint too; compare --rdzv-endpoint on all hosts, and try "
        "it from here: nc -vz HOST PORT",
        proves_not="that nobody is there: a wrong address and a firewall look the same",
        sample="torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the "
        "C10d store has failed. See inner exception for details.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="RendezvousClosedError",
        pattern=_RAISED + r"RendezvousClosedError",
        rule="JOIN008",
        says="torchrun came to a rendezvous that is closed already: the run of this --rdzv-id has ended",
        fix="give each run an --rdzv-id of its own; if this host was late, start all hosts again",
        proves_not="whether that was an earlier run, or this one without this host",
        sample="torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
        source=_SOURCE,
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
