"""The processes that `allaboard diagnose` is to look at, on this host or others, and what is seen there."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.cli.standard_output import print_error
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.facts import Diagnosis, HostLook

SECOND_LOOK_DELAY_S = 2.0
"""Time between two looks at a job in which the first found nothing."""
_HOST = re.compile(r"[A-Za-z0-9_][\w.@-]*")
"""A host as ssh(1) takes it; one that begins with a dash would be an option."""
_REMOTE_PID = re.compile(rf"({_HOST.pattern}):(\d{{1,10}})")


def find_only_job() -> list[str]:
    """Return the pids of the only job of several ranks that runs on this host, or the only process that
    trains.

    If there is none, or a choice, the list is printed, and the answer is empty.
    """
    from allaboard.diagnosis.live.job_list import describe_choice, describe_unreadable, list_jobs

    listed = list_jobs()
    candidates = [j for j in listed.jobs if len(j.pids) > 1] or list(listed.jobs)
    if len(candidates) != 1:
        print_error(f"allaboard diagnose: {describe_choice(listed)}")
        return []
    print_error(f"allaboard diagnose: examining {candidates[0].line}")
    for line in describe_unreadable(listed.unreadable):
        print_error(line)
    return [str(pid) for pid in candidates[0].pids]


def look_here(targets: list[str]) -> HostLook:
    """Return what is seen of these processes of this host. Raises UsageError for a pid that is no process."""
    from allaboard.diagnosis.live.process_inspection import inspect_processes
    from allaboard.diagnosis.live.target_selection import NoSuchProcessError, choose_processes

    try:
        selection = choose_processes(targets)
    except NoSuchProcessError as error:
        raise UsageError(str(error)) from None
    return inspect_processes(selection.pids, targets, selection.siblings)


def find_remote_targets(hosts: str, targets: list[str]) -> dict[str, list[str]]:
    """Return what to examine on which other host; empty if everything is on this host.

    Raises UsageError for names that are no hosts, and for a pid that could be on any of several.
    """
    matches = [_REMOTE_PID.fullmatch(t) for t in targets if not Path(t).exists()]
    targets_by_host: dict[str, list[str]] = {}
    if not hosts and matches and len(matches) == len(targets) and all(matches):
        for match in filter(None, matches):
            targets_by_host.setdefault(match[1], []).append(match[2])
        return targets_by_host
    names = [h.strip() for h in hosts.split(",") if h.strip()]
    if hosts and (not names or any(not _HOST.fullmatch(h) for h in names)):
        raise UsageError(f'--hosts expects host names, as node1,node2; got "{hosts}"')
    if hosts and any(t.isdecimal() for t in targets):
        pid = next(t for t in targets if t.isdecimal())
        raise UsageError(f"a pid belongs to one host; try: allaboard diagnose {names[0]}:{pid}")
    return dict.fromkeys(names, targets)


def look_at_hosts(
    targets_by_host: Mapping[str, Sequence[str]], ssh: str, remote: str
) -> tuple[HostLook, ...]:
    """Return what is seen on each of these hosts, over ``ssh``; ``remote`` is the command that starts
    allaboard there, "" for the same as here."""
    from allaboard.diagnosis.live.remote_diagnosis import inspect_hosts

    return inspect_hosts(
        targets_by_host, ssh, remote or shlex.join([sys.executable, "-m", "allaboard"])
    )


def diagnose_looks(
    looks: tuple[HostLook, ...], earlier_looks: tuple[HostLook, ...] = ()
) -> Diagnosis:
    """Return the diagnosis of processes that were looked at, a second time if ``earlier_looks`` are given."""
    from allaboard.analysis.stalls.examined_duration import unchanged_time
    from allaboard.diagnosis.live.live_diagnosis import diagnose_processes

    return diagnose_processes(
        looks, 2 if earlier_looks else 1, unchanged_time(earlier_looks, looks)
    )


def needs_second_look(diagnosis: Diagnosis, looks: tuple[HostLook, ...]) -> bool:
    """Return True if all ranks were seen and nothing was found: a hang that has just begun shows later."""
    is_complete = not (diagnosis.notes or diagnosis.missing or any(look.trouble for look in looks))
    return is_complete and not diagnosis.findings and sum(len(look.present) for look in looks) > 1


def look_again(
    looks: tuple[HostLook, ...],
    diagnosis: Diagnosis,
    look_at_hosts: Callable[[], tuple[HostLook, ...]] | None,
) -> tuple[tuple[HostLook, ...], Diagnosis]:
    """Return a second look at the same processes, or the first one if a process has ended since."""
    from allaboard.diagnosis.live.process_inspection import inspect_processes
    from allaboard.diagnosis.live.target_selection import NoSuchProcessError, choose_processes

    print_error("allaboard diagnose: no finding at the first look; looking once more")
    time.sleep(SECOND_LOOK_DELAY_S)
    pids = [str(p.member.who.pid) for look in looks for p in look.present]
    siblings = [pid for look in looks for pid in look.siblings]
    ended_pids = [str(departed.pid) for look in looks for departed in look.departed]
    try:
        second = (
            look_at_hosts()
            if look_at_hosts
            else (inspect_processes(choose_processes(pids).pids, pids + ended_pids, siblings),)
        )
    except NoSuchProcessError:
        return looks, diagnosis
    return second, diagnose_looks(second, looks)
