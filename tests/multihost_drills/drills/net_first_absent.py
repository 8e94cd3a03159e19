"""The host where all are to meet never starts its worker: told as a state within seconds, as a finding when
it has had its time."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="NET002",
    blames=(1,),
    on=(1,),
    absent=(0,),
    within=12.0,
    says=r"waiting [4-9] s for h0:29500, where all meet: that host is up and refuses the port",
)
