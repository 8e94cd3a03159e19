"""Frozen values that every other room speaks in. Nothing here decides, reads or writes."""

from allaboard.facts.finding import (
    Certainty,
    Claim,
    Evidence,
    Finding,
    Place,
    Severity,
    Stage,
    Who,
)
from allaboard.facts.job import JobView, LockWait
from allaboard.facts.member import (
    Declared,
    Exit,
    Frame,
    Member,
    Op,
    Phase,
    Raised,
    Stack,
)
from allaboard.facts.report import SCHEMA_VERSION, Outcome, Report, WorkerReport

__all__ = [
    "SCHEMA_VERSION",
    "Certainty",
    "Claim",
    "Declared",
    "Evidence",
    "Exit",
    "Finding",
    "Frame",
    "JobView",
    "LockWait",
    "Member",
    "Op",
    "Outcome",
    "Phase",
    "Place",
    "Raised",
    "Report",
    "Severity",
    "Stack",
    "Stage",
    "Who",
    "WorkerReport",
]
