"""What `allaboard preflight` found: the hosts, the links between them, one collective. Every face of
it renders this; the published JSON Schema is generated from it."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Finding
from allaboard.facts.link import Link, Usual

PREFLIGHT_VERSION = 1


class PreflightMember(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the job. ``state`` is "aboard" (it came and was let through), "waits" (it came),
    "late" (alive, has not come), "gone" (ended before it came) or "missing" (never heard of);
    ``facts`` what it runs with, by name; ``ahead`` how far its wall clock is ahead of that of the host
    where all meet (s)."""

    rank: int
    job: str
    index: int
    host: str
    pid: int
    state: str
    ahead: float = 0.0
    facts: dict[str, str] = {}


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """One preflight, as one host knows it: ``leads`` where all met there, which alone knows all.

    ``outcome`` is "ok", "failed" or "interrupted"; ``place`` where they met; ``size`` how many
    tasks there should be; ``met`` whether a roll call of so many was complete, as far as this host
    knows; ``mode`` "quick" or "full"; ``usual`` all links, where they are thousands and work well;
    ``collective`` what the framework's own collective took, in words, "" where none was tried or none
    came to its end. ``started`` is ISO 8601 UTC, ``seconds`` the whole duration.
    """

    schema: int = PREFLIGHT_VERSION
    allaboard: str
    job: str
    host: str
    leads: bool
    outcome: str
    exit_code: int
    started: str
    seconds: float
    framework: str
    mode: str
    place: str
    size: int
    members: tuple[PreflightMember, ...]
    links: tuple[Link, ...]
    collective: str
    findings: tuple[Finding, ...]
    usual: Usual | None = None
    met: bool = True

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts that are known, by the rank of their first member."""
        return tuple(dict.fromkeys(m.host for m in self.members if m.host))
