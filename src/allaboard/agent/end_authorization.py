"""Whether what another host's coordinator decides ends what is here. Pure."""

from __future__ import annotations

from allaboard.agent.options import Options
from allaboard.analysis.parameter_servers.parameter_servers import only_serve
from allaboard.facts import JobView, Outcome
from allaboard.protocol.commands import EndJob


def may_end(end: EndJob, options: Options, view: JobView) -> bool:
    """With a secret or certificates always, and in a rehearsal; else what the user allowed here too: a roll
    call with ``--timeout``, as long as nobody here has done a step, and a hang with ``--on-hang stop``; and
    what serves for a training that is done. Whether it trains, or serves, is seen here."""
    if options.secret or options.tls or options.stop_on_error:
        return True
    match end.outcome:
        case Outcome.ROLL_CALL_FAILED | Outcome.INTERRUPTED:
            return options.strict and not any(m.step for m in view.members)
        case Outcome.HANG:
            return options.stop_on_hang
        case Outcome.COMPLETED:
            return only_serve(view)
    return False
