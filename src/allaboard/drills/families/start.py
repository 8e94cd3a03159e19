"""Ranks that do not join: absent, late, dead before init, with a wrong rank, port or world size."""

from __future__ import annotations

import os
import signal
from functools import partial

from allaboard.contracts import Drill
from allaboard.drills.base_rows import lasting_drill, start_drill

ddp_start_drill = partial(start_drill, script="torch_ddp.py")

DRILLS = {
    "accelerate-alone": Drill(
        title=(
            "accelerate finds no GPU, and the script does not ask for the CPU: each process trains "
            "alone to the end"
        ),
        script="torch_alone.py",
        expects="JOIN010",
        workers=2,
        blames=(0, 1),
        inside=True,
        exit_codes=(0,),
    ),
    "alone": lasting_drill(
        title="A rank leaves out its pair's collective and continues to train alone",
        script="torch_by_hand.py",
        expects="HANG012",
        workers=4,
        arguments=("--pairs",),
    ),
    "asleep-before-init": ddp_start_drill(
        title="A rank sleeps in its own code before init",
        expects="JOIN002",
        options=("--timeout", "6", "--timeout-hard", "14"),
    ),
    "dies-before-init": ddp_start_drill(
        title="A rank raises before init",
        expects="JOIN003",
    ),
    "file-left": start_drill(
        title=(
            "All ranks have destroyed their group, PyTorch has not removed its file, and they "
            "create another group there"
        ),
        script="torch_file_again.py",
        expects="JOIN008",
        workers=2,
        guilty=0,
    ),
    "interrupted": Drill(
        title="Only one rank receives SIGINT, as from another terminal",
        script="torch_ddp.py",
        expects="EXIT008",
        outside=lambda pid: os.kill(pid, signal.SIGINT),
    ),
    "leaves-before-init": ddp_start_drill(
        title="A rank exits with code 0 before init",
        expects="JOIN003",
    ),
    "never-comes": ddp_start_drill(
        title="The world size is one more than the number of workers that are started",
        expects="JOIN001",
        workers=3,
        guilty=3,
        options=("--timeout", "6"),
    ),
    "never-ends": Drill(
        title="A rank has finished its training but does not exit after all others have exited",
        script="torch_ddp.py",
        expects="HANG008",
        inside=True,
        arguments=("--steps", "80"),
        options=("--on-hang", "stop", "--hang-after", "33"),
        exit_codes=(4,),
    ),
    "no-init": Drill(
        title="The script never calls init: each process trains alone and exits with code 0",
        script="torch_alone.py",
        expects="JOIN010",
        workers=2,
        blames=(0, 1),
        inside=True,
        exit_codes=(0,),
    ),
    "observed-absence": lasting_drill(
        title=(
            "With --observe no rank is held at the gate, and one sleeps before init: the others "
            "block inside init"
        ),
        script="torch_ddp.py",
        expects="JOIN004",
        workers=3,
        blames=(0, 2),
        fault="asleep-before-init",
        options=("--observe",),
    ),
    "other-port": ddp_start_drill(
        title="A rank has another MASTER_PORT than the others",
        expects="JOIN007",
    ),
    "port-taken": Drill(
        title="The port on which rank 0 listens is taken when it calls init",
        script="torch_ddp.py",
        expects="NET005",
        guilty=0,
        workers=2,
        inside=True,
    ),
    "probe-absent": Drill(
        title="The worker's interpreter loads no sitecustomize, so the probe is absent",
        script="torch_ddp.py",
        command=("{python}", "-I"),
        expects="HOST001",
        guilty=-1,
        workers=1,
        ends=False,
    ),
    "rank-out-of-range": ddp_start_drill(
        title="A rank's number is as large as the world size",
        expects="JOIN011",
        workers=3,
        guilty=2,
        blames=(3,),
    ),
    "sizes-disagree": ddp_start_drill(
        title="A rank has a smaller world size than the others",
        expects="JOIN006",
        workers=3,
    ),
    "wrong-rank": ddp_start_drill(
        title="Two processes claim to be rank 0",
        expects="JOIN005",
        workers=3,
        guilty=2,
        blames=(0,),
    ),
}
