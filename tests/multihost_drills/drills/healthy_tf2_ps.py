"""Nothing is wrong: a ParameterServerStrategy over four hosts, whose script knows nothing of serving, starts,
trains and ends, the servers and workers too, and nothing is said of it."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    roles=("chief", "worker", "worker", "ps"),
    scripts=dict.fromkeys(range(4), "tf2_ps.py"),
    arguments=("--rounds", "20"),
    options=(),
    exit_codes=(0,),
    long="healthy-ps shows the same under TensorFlow 1",
)
