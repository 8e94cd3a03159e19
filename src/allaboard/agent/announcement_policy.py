"""What an agent says aloud of the job, where several agents tell the same of it.

A launcher that starts several tasks on a host mixes their output: each finding would be read as often as the
host has tasks. So the first of them speaks; the others do where no other agent decides for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.agent.host_dedup import HostDedup
from allaboard.agent.options import Options
from allaboard.configuration.local_rank import is_first_on_host
from allaboard.facts import Finding


class AnnouncementPolicy:
    """Where ``quiet``, another agent's state decides for all, and what it tells comes here too."""

    def __init__(self, options: Options, environment: Mapping[str, str]) -> None:
        joined = options.joined
        attached = options.attached and joined is not None
        self._is_attached_follower = attached and joined is not None and joined.rank > 0
        self._is_secondary_local_task = joined is not None and not is_first_on_host(environment)
        self._host_dedup = HostDedup() if attached else None
        self._rules_from_elsewhere: set[str] = set()
        """Rules of what another agent told."""

    def shows_notes(self, decided_elsewhere: bool) -> bool:
        """Whether the course of things is told in the terminal, too."""
        return not self._is_attached_follower and not (
            self._is_secondary_local_task and decided_elsewhere
        )

    def shows_finding(self, finding: Finding, decided_elsewhere: bool) -> bool:
        """Whether this finding is told in the terminal, too. An agent beside a process ends with it: who is
        left without the one that decided sees less of the job, and does not tell again what was told."""
        if decided_elsewhere:
            self._rules_from_elsewhere.add(finding.rule)
        elif self._host_dedup is not None and finding.rule in self._rules_from_elsewhere:
            return False
        if self._is_secondary_local_task and decided_elsewhere:
            return False
        return self._host_dedup is None or self._host_dedup.is_first(finding)
