"""Nothing is wrong: a ParameterServerStrategy with an evaluator on a host of its own, which looks for
checkpoints for ever. When the training is done it gets its minute, and is ended with the servers: 0 on every
host."""

from multihost_drills.contract import HostDrill

DRILL = HostDrill(
    framework="tensorflow",
    expects="",
    roles=("chief", "worker", "ps", "evaluator"),
    scripts={0: "tf2_ps.py", 1: "tf2_ps.py", 2: "tf2_ps.py", 3: "tf_evaluator.py"},
    arguments=("--rounds", "20"),
    options=(),
    exit_codes=(0,),
    says=r"chief 0 ended with exit code 0; ending what serves: .*evaluator 0",
    long="a minute for the evaluator's last checkpoint",
)
