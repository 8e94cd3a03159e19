"""Four hosts are meant; on one of them nobody starts the job."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(framework="torch", expects="JOIN001", blames=(2,), absent=(2,), within=12.0)
