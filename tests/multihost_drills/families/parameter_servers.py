"""Jobs with parameter servers on several hosts."""

from __future__ import annotations

from multihost_drills.contract import HostDrill

DRILLS = {
    "ps-slow-link": HostDrill(
        title=(
            "One of two parameter servers has a link of 8 Mbit/s, the other tasks a gigabit or more"
        ),
        framework="tensorflow",
        expects="PS007",
        blames=(3,),
        roles=("worker", "worker", "ps", "ps"),
        arrange=lambda bed: bed.narrow("h3", 8),
        arguments=("--width", "1200"),
        options=(),
        ends=False,
        within=60.0,
        allowed=("NET008",),
    ),
    "ps-slow-link-of-worker": HostDrill(
        title="One of two workers has links of 8 Mbit/s to every parameter server",
        framework="tensorflow",
        expects="PS007",
        blames=(1,),
        roles=("worker", "worker", "ps", "ps"),
        arrange=lambda bed: bed.narrow("h1", 8),
        arguments=("--width", "1200"),
        options=(),
        ends=False,
        within=60.0,
        allowed=("NET008",),
        long="ps-slow-link shows the same at the other end",
    ),
}
