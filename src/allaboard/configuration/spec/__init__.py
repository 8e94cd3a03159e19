"""Work on specs: parts merged, tasks listed, and texts read that several sources share."""

from allaboard.configuration.spec.cluster_json import read_cluster
from allaboard.configuration.spec.field_picker import pick_fields
from allaboard.configuration.spec.likely_mistakes import likely_mistake
from allaboard.configuration.spec.merge import merge_parts
from allaboard.configuration.spec.spec_members import count_hosts, machines_of_lines, own_member
from allaboard.configuration.spec.task_list import Task, list_tasks, meeting_host_and_port

__all__ = [
    "Task",
    "count_hosts",
    "likely_mistake",
    "list_tasks",
    "machines_of_lines",
    "meeting_host_and_port",
    "merge_parts",
    "own_member",
    "pick_fields",
    "read_cluster",
]
