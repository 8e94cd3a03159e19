"""Specs put together: partial ones merged, tasks derived, texts read that several sources share."""

from allaboard.spec.cluster_json import cluster_of
from allaboard.spec.likely import likely
from allaboard.spec.members import hosts, own
from allaboard.spec.merge import merge
from allaboard.spec.pick import pick
from allaboard.spec.tasks import Task, place, tasks

__all__ = ["Task", "cluster_of", "hosts", "likely", "merge", "own", "pick", "place", "tasks"]
