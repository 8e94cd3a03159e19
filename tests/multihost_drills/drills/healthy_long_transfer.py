"""Nothing is wrong: a large tensor takes a while over a slow link, and nothing is said of it but the link."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="",
    hosts=2,
    arrange=lambda bed: bed.narrow("h1", 40),
    scripts={0: "torch_large.py", 1: "torch_large.py"},
    options=("--on-hang", "stop", "--hang-after", "6"),
    exit_codes=(0,),
    allowed=("NET008",),
)
