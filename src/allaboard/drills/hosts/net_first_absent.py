"""The host where all are to meet never starts its worker."""

from allaboard.contracts import HostDrill

DRILL = HostDrill(
    framework="torch", expects="NET002", blames=(1,), on=(1,), absent=(0,), within=12.0
)
