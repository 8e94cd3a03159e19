"""Several tasks that one session waited for, as one message: a fact is said once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Heard, Who

MAX_NAMED_TASKS = 4
"""Tasks that a sentence names; the others are counted."""


def join_waits(waits: Sequence[Heard], rule: str) -> tuple[Heard, ...]:
    """Return the messages with those of the rule ``rule`` as one, which names all tasks.

    Parameter servers come first: without them nobody trains.
    """
    of_rule = [h for h in waits if h.rule == rule and h.about]
    awaited = list(dict.fromkeys(task for h in of_rule for task in h.about))
    if len(awaited) < 2 or len({h.speakers[0].place.file for h in of_rule}) > 1:
        return tuple(waits)
    servers = [task for task in awaited if task.job == "ps"]
    awaited = servers + [task for task in awaited if task.job != "ps"]
    server_wait = next(h for h in of_rule if awaited[0] in h.about)
    names = _names(awaited)
    fix = (
        f"read the logs of {names}: did they start, and do they listen where TF_CONFIG (--ps_hosts, "
        "--worker_hosts) says? From this host, of each: nc -vz HOST PORT"
    )
    if not servers:
        filters = "device_filters=['/job:ps', '/job:worker/task:N']"
        fix += f"; tf.ConfigProto({filters}) waits for the servers alone"
    joined = msgspec.structs.replace(
        server_wait, says=f"the session waited for {names}", fix=fix, about=tuple(awaited)
    )
    return (joined, *(h for h in waits if h not in of_rule))


def _names(awaited: Sequence[Who]) -> str:
    named = [f"{task.job} {task.index}" for task in awaited[:MAX_NAMED_TASKS]]
    unnamed_count = len(awaited) - len(named)
    if unnamed_count:
        return f"{', '.join(named)} and {unnamed_count} more"
    return f"{', '.join(named[:-1])} and {named[-1]}"
