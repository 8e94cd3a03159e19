"""Jobs that are restarted after a failure, as a whole or one task alone."""

from __future__ import annotations

from allaboard.contracts import Drill
from allaboard.drills.base_rows import lasting_drill
from allaboard.launch.signals import continue_process, kill_process, stop_process

DRILLS = {
    "comes-back": lasting_drill(
        title="A rank sleeps for a while in the middle of training and then continues",
        script="torch_ddp.py",
        expects="HANG005",
        over=True,
    ),
    "restart-exception": Drill(
        title="A rank raises at the same line and step in every round; it is restarted only once",
        script="torch_ddp.py",
        expects="EXIT002",
        inside=True,
        fault="exception",
        options=("--on-failure", "restart", "--max-restarts", "9"),
        restarts=1,
        long="tests/cli stages it without a framework in a second",
    ),
    "restart-killed": Drill(
        title=(
            "A rank is killed in the middle of training; all ranks are restarted, and the training "
            "completes"
        ),
        script="torch_ddp.py",
        expects="EXIT001",
        outside=kill_process,
        arguments=("--steps", "150"),
        options=("--on-failure", "restart"),
        exit_codes=(0,),
        restarts=1,
    ),
    "restart-ps": Drill(
        title=(
            "A TensorFlow 1 parameter server is killed and restarted at the same address; no "
            "worker is restarted: their sessions reconnect, and the training completes"
        ),
        # Nobody waits in its stead: it would be back before there is anything to say.
        script="tf1_ps.py",
        expects="PS001",
        workers=1,
        guilty=1,
        trains=0,
        arguments=("--steps", "300"),
        options=("--ps", "1", "--on-failure", "restart", "--ps-standby", "off"),
        outside=kill_process,
        exit_codes=(0,),
        returns=1,
        allowed=("PS014",),
    ),
    "restart-ps-lost": Drill(
        title=(
            "A TensorFlow 1 parameter server without checkpoints is killed; it is restarted empty, "
            "and all steps are lost"
        ),
        script="tf1_ps.py",
        expects="PS014",
        workers=1,
        guilty=1,
        trains=0,
        arguments=("--steps", "300"),
        options=("--ps", "1", "--on-failure", "restart"),
        outside=kill_process,
        exit_codes=(0,),
        returns=1,
        allowed=("PS001",),
        long="restart-ps makes the same run, and allows the finding",
    ),
    "restart-ps-stopped": Drill(
        title="A TensorFlow 1 parameter server is stopped and never continued; it is replaced",
        script="tf1_ps.py",
        expects="HANG001",
        workers=1,
        guilty=1,
        trains=0,
        arguments=("--steps", "300"),
        options=("--ps", "1", "--on-failure", "restart", "--stopped-after", "3"),
        outside=stop_process,
        heal=continue_process,
        exit_codes=(0,),
        returns=1,
        allowed=("PS014",),
        long="restart-ps stages the return of a server, restart-stopped the patience",
    ),
    "restart-stopped": Drill(
        title="A rank is stopped and never continued; it is replaced, and the training completes",
        script="torch_ddp.py",
        expects="HANG001",
        outside=stop_process,
        heal=continue_process,
        arguments=("--steps", "150"),
        options=("--on-failure", "restart", "--stopped-after", "3"),
        exit_codes=(0,),
        restarts=1,
    ),
    "restart-tf2-ps": Drill(
        title=(
            "A server of a ParameterServerStrategy is killed: the chief cannot continue, so all "
            "tasks are restarted"
        ),
        script="tf2_ps.py",
        expects="PS001",
        workers=1,
        guilty=2,
        trains=0,
        options=("--ps", "1", "--chief", "--on-failure", "restart"),
        arguments=("--rounds", "40"),
        outside=kill_process,
        exit_codes=(0,),
        restarts=1,
    ),
    "restart-tf2-worker": Drill(
        title=(
            "A worker of a ParameterServerStrategy is killed; it is restarted alone, and the chief "
            "continues with it"
        ),
        script="tf2_ps.py",
        expects="EXIT001",
        workers=1,
        guilty=1,
        trains=0,
        options=("--ps", "1", "--chief", "--on-failure", "restart"),
        arguments=("--rounds", "100"),
        outside=kill_process,
        exit_codes=(0,),
        returns=1,
        long="two starts of TensorFlow; restart-tf2-ps stages TensorFlow 2",
    ),
}
