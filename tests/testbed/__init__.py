"""Hosts on one machine: network namespaces with an address, a name, a process table and a firewall each.

Needs root, iproute2, nftables and util-linux. What a bed makes has no name outside it: the
machine's own network, its mounts and its /etc are not touched, and two beds never meet.
"""

from testbed.bed import Bed
from testbed.errors import CannotMake, CommandFailed
from testbed.firewall import Block
from testbed.process import Process
from testbed.requirements import missing

__all__ = ["Bed", "Block", "CannotMake", "CommandFailed", "Process", "missing"]
