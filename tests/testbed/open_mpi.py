"""Open MPI over the hosts of a bed: mpirun on the first, which reaches the others by ssh."""

from __future__ import annotations

from testbed.bed import Bed
from testbed.requirements import program
from testbed.ssh import NEEDS as SSH_NEEDS
from testbed.ssh import Ssh

NEEDS = ("mpirun", *SSH_NEEDS)


class OpenMpi:
    """``command`` begins a start: ``bed.run("h0", *mpi.command, "-n", "4", "hostname")``; one slot a
    host."""

    def __init__(self, bed: Bed, ssh: Ssh | None = None) -> None:
        """Starts the ssh servers where there are none yet. Raises as Ssh does."""
        agent = " ".join((ssh or Ssh(bed)).command)
        self.command = (
            *(program("mpirun"), "--allow-run-as-root", "--host", ",".join(bed.hosts)),
            *("--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1"),
            *("--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"),
        )
