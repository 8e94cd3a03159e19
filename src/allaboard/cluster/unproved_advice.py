"""What a leader says that has proved nothing: it is shown as its word, and advises no command. Pure.

Without a secret and without TLS anybody who answers at the rendezvous address is followed. What such a leader
finds may be true, but this host cannot know it: it is never certain here, and the command to type next is one
of this host's own.
"""

from __future__ import annotations

import re

import msgspec

from allaboard.facts import Certainty, Evidence, Finding
from allaboard.protocol.commands import (
    AnnounceFinding,
    Command,
    EndJob,
    KillForReplacement,
    OpenHeldGates,
    ReportInterruption,
    ShowNote,
)

_RULE_CODE = re.compile(r"[A-Z]{2,6}[0-9]{3}")


def mark_unproved(command: Command, leader: str) -> Command:
    """Return the command as this host carries it out if the leader at this address has proved nothing."""
    says = f"says {leader or 'the leader'}, unproved"
    match command:
        case AnnounceFinding():
            return AnnounceFinding(finding=_unproved_finding(command.finding, says))
        case ShowNote():
            return msgspec.structs.replace(command, text=f"{command.text} ({says})")
        case ReportInterruption():
            return msgspec.structs.replace(command, host=f"{command.host} ({says})")
        case EndJob() | OpenHeldGates() | KillForReplacement():
            return msgspec.structs.replace(command, reason=f"{command.reason} ({says})")
    return command


def _unproved_finding(finding: Finding, says: str) -> Finding:
    is_known = _RULE_CODE.fullmatch(finding.rule) is not None
    certainty = finding.certainty
    return msgspec.structs.replace(
        finding,
        certainty=Certainty.LIKELY if certainty is Certainty.CERTAIN else certainty,
        evidence=(Evidence(says), *finding.evidence),
        fix=f"allaboard explain {finding.rule}" if is_known and finding.fix else "",
    )
