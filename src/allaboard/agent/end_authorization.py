"""Decides whether another host's coordinator may end the workers of this host. Pure."""

from __future__ import annotations

from allaboard.agent.options import Options
from allaboard.analysis.parameter_servers import nobody_trains
from allaboard.facts import JobView, Outcome
from allaboard.protocol.commands import EndJob


def may_end(end: EndJob, options: Options, view: JobView) -> bool:
    """Return True if this host obeys an order to end that came from another host.

    With a job secret or certificates the sender is known, so the order is obeyed; also in a rehearsal, which
    has nothing to lose. Without them only what the user of this host allowed as well: a failed roll call with
    ``--timeout`` while no member here has made a step, a hang with ``--on-hang stop``, and parameter servers
    whose training is done. Steps and servers are taken from this host's own ``view``, never from the sender.
    """
    if options.secret or options.tls or options.stop_on_error:
        return True
    match end.outcome:
        case Outcome.ROLL_CALL_FAILED | Outcome.INTERRUPTED:
            return options.strict and not any(m.step for m in view.members)
        case Outcome.HANG:
            return options.stop_on_hang
        case Outcome.COMPLETED:
            return nobody_trains(view)
    return False
