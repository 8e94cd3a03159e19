"""Which notes and findings an agent prints when several agents of one host would print the same.

A launcher that starts several tasks on a host mixes their output, so each finding would be read as often as
the host has tasks. Therefore the agent of the first task prints; the others do only while no other agent
decides for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.agent.host_dedup import HostDedup
from allaboard.agent.options import Options
from allaboard.configuration.local_rank import is_first_on_host
from allaboard.facts import Finding


class AnnouncementPolicy:
    """Decides what this agent prints; the journal gets everything in any case.

    ``decided_elsewhere`` in its methods: another agent's coordinator decides for all hosts, and this agent
    receives what that one announces.
    """

    def __init__(self, options: Options, environment: Mapping[str, str]) -> None:
        joined = options.joined
        attached = options.attached and joined is not None
        self._is_attached_follower = attached and joined is not None and joined.rank > 0
        self._is_secondary_local_task = joined is not None and not is_first_on_host(environment)
        self._host_dedup = HostDedup() if attached else None
        self._rules_from_elsewhere: set[str] = set()
        """Rules of the findings that another agent has announced."""

    def shows_notes(self, decided_elsewhere: bool) -> bool:
        """Return True if progress notes are printed in the terminal, too."""
        return not self._is_attached_follower and not (
            self._is_secondary_local_task and decided_elsewhere
        )

    def shows_finding(self, finding: Finding, decided_elsewhere: bool) -> bool:
        """Return True if this finding is printed in the terminal, too.

        An agent that is attached to a process ends with it. An agent that loses the deciding one sees less of
        the job, so it does not repeat findings that were announced before.
        """
        if decided_elsewhere:
            self._rules_from_elsewhere.add(finding.rule)
        elif self._host_dedup is not None and finding.rule in self._rules_from_elsewhere:
            return False
        if self._is_secondary_local_task and decided_elsewhere:
            return False
        return self._host_dedup is None or self._host_dedup.is_first(finding)
