"""A host cannot use the file of the file:// rendezvous: its folder is missing or not writable.

## Why it matters
PyTorch opens the file in a loop without a timeout. The rank on this host waits silently forever, and so do
the others, which wait for it.

## What to do
Run `ls -ld FOLDER; df FOLDER` on that host: they show whether the folder exists, who owns it, and what is
mounted. Mount the shared disk on that host, writable, at the same path as on the others.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from allaboard.analysis.network.link_faults import (
    example_host_member,
    example_hosts_with,
    is_heard_by_all,
)
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView
from allaboard.facts.outcome import Retry


def check(view: JobView) -> Iterator[Claim]:
    held_members = [m for roll in find_roll_calls(view) for m in roll.held_members]
    # If others of the job can use the file, its path is right, and this host lacks the mount.
    is_only_some = any(not m.facts.get("rendezvous trouble") for m in held_members)
    for member in [m for m in held_members if "rendezvous trouble" in m.facts]:
        trouble, declaration = member.facts["rendezvous trouble"], member.declared
        if not trouble or declaration is None or not is_heard_by_all(view, member):
            continue
        folder = declaration.place.removeprefix("file://").rpartition("/")[0] or "/"
        yield Claim(
            summary=f"{member.who.host} cannot use the rendezvous file: {trouble}",
            who=(member.who,),
            evidence=(
                Evidence(trouble, member.who.host),
                Evidence(declaration.place, declaration.origin),
            ),
            fix=f"on {member.who.host}: ls -ld {shlex.quote(folder)}; df {shlex.quote(folder)}   "
            "# then mount the shared disk there, as on the other hosts",
            since=member.phase_since,
            retry=Retry.ELSEWHERE if is_only_some else Retry.NEVER,
        )


def _view(trouble: str) -> JobView:
    facts = {"rendezvous trouble": trouble} if trouble else {"rendezvous joined": "0"}
    member = example_host_member(2, facts=facts)
    assert member.declared is not None
    declaration = msgspec.structs.replace(member.declared, place="file:///shared/run/meeting")
    return example_hosts_with(msgspec.structs.replace(member, declared=declaration))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one host has not mounted the folder of the rendezvous file": (
            _view("there is no folder /shared"),
            "h2 cannot use the rendezvous file: there is no folder /shared",
        )
    },
    silent_on={"the folder of the rendezvous file can be used": _view("")},
    drill=("file-folder-missing", "file-folder-read-only"),
)
