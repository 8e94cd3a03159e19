"""A real Slurm over the hosts of a bed: munge and slurmd on each, slurmctld on the first."""

from __future__ import annotations

import os
import secrets

from testbed.bed import Bed
from testbed.process import Process
from testbed.requirements import program
from testbed.wait_until import until

NEEDS = ("munged", "slurmctld", "slurmd")
SECONDS = 30.0
_CONFIGURATION = """\
ClusterName=bed
SlurmctldHost={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={names} CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """``environment`` is what srun, sbatch and scontrol on any host need."""

    def __init__(self, bed: Bed) -> None:
        """Returns once every node is idle. Raises CannotMake, or FileNotFoundError with the package."""
        self._bed = bed
        folder = bed.folder / "slurm"
        (folder / "state").mkdir(parents=True)
        file = folder / "slurm.conf"
        names = ",".join(bed.hosts)
        file.write_text(_CONFIGURATION.format(first=bed.hosts[0], folder=folder, names=names))
        self.environment = {**os.environ, "SLURM_CONF": str(file)}
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        services = [self._munge(host, str(key)) for host in bed.hosts]
        until(self._munge_answers, services, "munge", SECONDS)
        controller = [program("slurmctld"), "-D", "-f", str(file)]
        services.append(bed.start(bed.hosts[0], controller, self.environment))
        for host in bed.hosts:
            words = [program("slurmd"), "-D", "-N", host, "-f", str(file)]
            services.append(bed.start(host, words, self.environment))
        until(self._idle, services, "slurm", SECONDS)

    def _munge(self, host: str, key: str) -> Process:
        folder = self._bed.path(host, "/run/munge")
        folder.mkdir(mode=0o755)
        words = [program("munged"), "--foreground", "--force", f"--key-file={key}"]
        words += [f"--{name}-file=/run/munge/{name}" for name in ("pid", "seed", "log")]
        return self._bed.start(host, words)

    def _munge_answers(self) -> bool:
        socket = "/run/munge/munge.socket.2"
        return all(self._bed.path(host, socket).exists() for host in self._bed.hosts)

    def _idle(self) -> bool:
        words = [program("sinfo"), "--noheader", "--Node", "--format", "%T"]
        asked = self._bed.start(self._bed.hosts[0], words, self.environment)
        return not asked.wait(SECONDS) and asked.text().split() == ["idle"] * len(self._bed.hosts)
