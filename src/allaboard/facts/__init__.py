"""Frozen values that all other rooms use. Nothing here decides, reads or writes."""

from allaboard.facts.address import Address, whole_number
from allaboard.facts.attempts import Cause, RoundEnd, RoundReport, TaskReturn
from allaboard.facts.collective_calls import GroupState, Signature, Traced, Unused
from allaboard.facts.configuration.cluster import (
    FIELDS,
    ClusterSpec,
    Conflict,
    Machine,
    Origin,
    PartialSpec,
    Pasted,
    Problem,
    Value,
)
from allaboard.facts.configuration.config_facts import (
    ConfigFacts,
    FilePlace,
    LocalHost,
    sample_config_facts,
)
from allaboard.facts.configuration.manifest import (
    ManifestFacts,
    Role,
    Service,
    ServicePort,
    Workload,
)
from allaboard.facts.configuration.script import ScriptFacts
from allaboard.facts.configuration.source_material import OPAQUE, Material
from allaboard.facts.configuration.text_positions import Part
from allaboard.facts.configuration.tree import FormatError, Node
from allaboard.facts.diagnosis import Branch, Crowd, Diagnosis
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
from allaboard.facts.flight_records import Recorded, Recording
from allaboard.facts.interruption import ASKING, Interruption
from allaboard.facts.job import JobView, LockWait
from allaboard.facts.link import KNOCKS, Answer, Call, Holder, Knock, Link, Silence, Usual
from allaboard.facts.live_look import Departed, HostLook, Present, Socket
from allaboard.facts.log_evidence import (
    Dumps,
    Exhibit,
    Glimpse,
    Heard,
    Overdue,
    Speaker,
    Testimony,
    Watchdogs,
)
from allaboard.facts.member import (
    ATTACHED,
    BOX,
    EACH_OWN,
    Declared,
    Exit,
    Member,
    Op,
    Phase,
    Raised,
)
from allaboard.facts.outcome import Outcome
from allaboard.facts.preflight import PREFLIGHT_VERSION, Preflight, PreflightMember
from allaboard.facts.report import SCHEMA_VERSION, Report, Times, WorkerReport
from allaboard.facts.rollback import Setback
from allaboard.facts.stack import Frame, Grip, Holds, Stack, Task
from allaboard.facts.time_shares import Batch, Check, Load, Loop, Loss, Numbered, Pace, Saves, Spent
from allaboard.facts.traffic import Flow, Flows, Pair
from allaboard.facts.usage import Reading, Trend, Use

__all__ = [
    "ASKING",
    "ATTACHED",
    "BOX",
    "EACH_OWN",
    "FIELDS",
    "KNOCKS",
    "OPAQUE",
    "PREFLIGHT_VERSION",
    "SCHEMA_VERSION",
    "Address",
    "Answer",
    "Batch",
    "Branch",
    "Call",
    "Cause",
    "Certainty",
    "Check",
    "Claim",
    "ClusterSpec",
    "ConfigFacts",
    "Conflict",
    "Crowd",
    "Declared",
    "Departed",
    "Diagnosis",
    "Dumps",
    "Evidence",
    "Exhibit",
    "Exit",
    "FilePlace",
    "Finding",
    "Flow",
    "Flows",
    "FormatError",
    "Frame",
    "Glimpse",
    "Grip",
    "GroupState",
    "Heard",
    "Holder",
    "Holds",
    "HostLook",
    "Interruption",
    "JobView",
    "Knock",
    "Link",
    "Load",
    "LocalHost",
    "LockWait",
    "Loop",
    "Loss",
    "Machine",
    "ManifestFacts",
    "Material",
    "Member",
    "Node",
    "Numbered",
    "Op",
    "Origin",
    "Outcome",
    "Overdue",
    "Pace",
    "Pair",
    "Part",
    "PartialSpec",
    "Pasted",
    "Phase",
    "Place",
    "Preflight",
    "PreflightMember",
    "Present",
    "Problem",
    "Raised",
    "Reading",
    "Recorded",
    "Recording",
    "Report",
    "Role",
    "RoundEnd",
    "RoundReport",
    "Saves",
    "ScriptFacts",
    "Service",
    "ServicePort",
    "Setback",
    "Severity",
    "Signature",
    "Silence",
    "Socket",
    "Speaker",
    "Spent",
    "Stack",
    "Stage",
    "Task",
    "TaskReturn",
    "Testimony",
    "Times",
    "Traced",
    "Trend",
    "Unused",
    "Use",
    "Usual",
    "Value",
    "Watchdogs",
    "Who",
    "WorkerReport",
    "Workload",
    "sample_config_facts",
    "whole_number",
]
