"""Specs put together: partial ones merged, tasks derived, texts read that several sources share."""

from allaboard.configuration.spec.cluster_json import cluster_of
from allaboard.configuration.spec.field_picker import pick
from allaboard.configuration.spec.likely_mistakes import likely
from allaboard.configuration.spec.merge import merge
from allaboard.configuration.spec.spec_members import hosts, machines_of_lines, own
from allaboard.configuration.spec.task_list import Task, place, tasks

__all__ = [
    "Task",
    "cluster_of",
    "hosts",
    "likely",
    "machines_of_lines",
    "merge",
    "own",
    "pick",
    "place",
    "tasks",
]
