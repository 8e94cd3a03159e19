"""One host starts 20 s after the others, which is late and no fault: the job waits, and trains."""

from allaboard.contracts import HostDrill

DRILL = HostDrill(
    framework="torch",
    expects="",
    late={3: 20.0},
    arguments=("--steps", "20"),
    options=("--timeout", "60"),
    exit_codes=(0,),
    long="20 s of waiting",
)
