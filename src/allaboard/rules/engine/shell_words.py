"""Makes every name that comes from another host one word of the shell in the command that a claim advises.

People paste these commands. Host names, addresses and paths are what other hosts say of themselves, so one
that the shell would not read as a single harmless word is quoted, in all rules, at this one place.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec

from allaboard.facts import Claim, JobView

_UNSAFE = re.compile(r"[^\w@%+=:,./\[\]-]", re.ASCII)
"""What `shlex.quote` quotes, but for the brackets of an IPv6 address."""


def quote_foreign_names(claim: Claim, names: tuple[str, ...]) -> Claim:
    """Return the claim with these unsafe names quoted wherever its advice has them."""
    if not claim.fix or not any(name in claim.fix for name in names):
        return claim
    quoted = {name: shlex.quote(_printable(name)) for name in names}
    # The quoted form of each comes before the name itself, and long names before those that are part of them.
    forms = {form: word for name, word in quoted.items() for form in (shlex.quote(name), name)}
    pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    fix = re.sub(pattern, lambda match: forms[match[0]], claim.fix)
    return msgspec.structs.replace(claim, fix=fix)


def unsafe_names(view: JobView) -> tuple[str, ...]:
    """Return the names and addresses in a picture of a job that the shell would not take for one word."""
    return tuple(name for name in dict.fromkeys(_foreign_names(view)) if _UNSAFE.search(name))


def _foreign_names(view: JobView) -> Iterator[str]:
    yield view.place
    yield from view.clocks
    for member in view.members:
        yield member.who.host
        declared = member.declared
        if declared is not None:
            yield from (declared.place, declared.bind, *declared.cluster.values())
            if "://" in declared.place:
                yield declared.place.partition("://")[2]
                yield declared.place.partition("://")[2].rpartition(":")[0]
    for link in view.links:
        yield from (link.source, link.target, link.address, link.address.rpartition(":")[0])
    for knock in view.knocks:
        yield from (knock.peer, knock.host)
    if view.call is not None:
        call = view.call
        yield from (call.address, call.met, call.address.rpartition(":")[0])
    if view.holder is not None:
        yield from (view.holder.address, view.holder.address.rpartition(":")[0])


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
