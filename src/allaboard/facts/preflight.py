"""The result of `allaboard preflight`: the hosts, the links between them, one collective.

Every output format renders this; the published JSON Schema is generated from it.
"""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Finding
from allaboard.facts.link import Link, Usual

PREFLIGHT_VERSION = 1


class PreflightMember(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the job."""

    rank: int
    """Its rank."""
    job: str
    """Job of the task: worker, ps, chief."""
    index: int
    """Index of the task within its job."""
    host: str
    """Its host; "" if it was never heard of."""
    pid: int
    """Pid of its stand-in; 0 if it was never heard of."""
    state: str
    """"aboard" (it came and was let through), "waits" (it came), "late" (alive, has not come), "gone"
    (ended before it came) or "missing" (never heard of)."""
    ahead: float = 0.0
    """How far its wall clock is ahead of that of the host where all meet (s)."""
    facts: dict[str, str] = {}
    """What it runs with, by name."""


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """One preflight, as one host knows it."""

    schema: int = PREFLIGHT_VERSION
    """Version of this format."""
    allaboard: str
    """Version of allaboard."""
    job: str
    """The job's id."""
    host: str
    """The host that tells this."""
    leads: bool
    """True if all met on this host, which alone knows all."""
    outcome: str
    """"ok", "failed" or "interrupted"."""
    exit_code: int
    """Exit code of allaboard."""
    started: str
    """When it began, ISO 8601 in UTC."""
    seconds: float
    """Its whole duration."""
    framework: str
    """The framework that the job would use."""
    mode: str
    """"quick" or "full"."""
    place: str
    """Where all met."""
    size: int
    """How many tasks there should be."""
    members: tuple[PreflightMember, ...]
    """The tasks."""
    links: tuple[Link, ...]
    """The links between their hosts."""
    collective: str
    """What the framework's own collective took, in words; "" if none was tried or none came to its end."""
    findings: tuple[Finding, ...]
    """What the rules found."""
    usual: Usual | None = None
    """All links together, if they are thousands and work well."""
    met: bool = True
    """True if a roll call of so many was complete, as far as this host knows."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the known hosts, by the rank of their first member."""
        return tuple(dict.fromkeys(m.host for m in self.members if m.host))
