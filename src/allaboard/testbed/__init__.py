"""Hosts on one machine: network namespaces with an address, a name, a process table and a firewall each.

Needs root, iproute2, nftables and util-linux. What a bed makes has no name outside it: the
machine's own network, its mounts and its /etc are not touched, and two beds never meet.
"""

from allaboard.testbed.bed import Bed
from allaboard.testbed.errors import CannotMake, CommandFailed
from allaboard.testbed.firewall import Block
from allaboard.testbed.needs import missing
from allaboard.testbed.process import Process

__all__ = ["Bed", "Block", "CannotMake", "CommandFailed", "Process", "missing"]
