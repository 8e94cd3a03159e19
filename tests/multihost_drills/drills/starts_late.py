"""One host starts late, which is no fault: the job waits, every host says for whom, and trains."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="",
    on=(0, 1, 3),
    late={2: 40.0},
    says=r"3 of 4 aboard, waiting \d+ s for (rank 2: never heard of|worker 2: \w+)",
    arguments=("--steps", "20"),
    options=("--timeout", "90"),
    exit_codes=(0,),
    long="40 s of waiting",
)
