"""Ranks that do not join: absent, late, dead before init, with a wrong rank, port or world size."""

from __future__ import annotations

import os
import signal

from allaboard.contracts import Drill

DRILLS = {
    "accelerate-alone": Drill(
        title=(
            "accelerate finds no GPU and is not told that the CPU is meant: each process trains "
            "alone, to the end"
        ),
        script="torch_alone.py",
        expects="JOIN010",
        workers=2,
        blames=(0, 1),
        inside=True,
        exit_codes=(0,),
    ),
    "alone": Drill(
        title="A rank leaves its pair's collective out, and trains on alone",
        script="torch_by_hand.py",
        expects="HANG012",
        workers=4,
        inside=True,
        arguments=("--pairs",),
        ends=False,
    ),
    "asleep-before-init": Drill(
        title="A rank sleeps in its own code before init",
        script="torch_ddp.py",
        expects="JOIN002",
        inside=True,
        options=("--timeout", "6", "--timeout-hard", "14"),
        exit_codes=(3,),
    ),
    "dies-before-init": Drill(
        title="A rank raises before init",
        script="torch_ddp.py",
        expects="JOIN003",
        inside=True,
        exit_codes=(3,),
    ),
    "file-left": Drill(
        title=(
            "All have destroyed their group, PyTorch has not removed its file, and they make "
            "another group at it"
        ),
        script="torch_file_again.py",
        expects="JOIN008",
        workers=2,
        guilty=0,
        inside=True,
        exit_codes=(3,),
    ),
    "interrupted": Drill(
        title="One rank alone gets a SIGINT, as from another terminal",
        script="torch_ddp.py",
        expects="EXIT008",
        outside=lambda pid: os.kill(pid, signal.SIGINT),
    ),
    "leaves-before-init": Drill(
        title="A rank returns with exit code 0 before init",
        script="torch_ddp.py",
        expects="JOIN003",
        inside=True,
        exit_codes=(3,),
    ),
    "never-comes": Drill(
        title="The world is one larger than the number of workers that are started",
        script="torch_ddp.py",
        expects="JOIN001",
        workers=3,
        guilty=3,
        inside=True,
        options=("--timeout", "6"),
        exit_codes=(3,),
    ),
    "never-ends": Drill(
        title="A rank has trained to its end and never leaves, after all others have",
        script="torch_ddp.py",
        expects="HANG008",
        inside=True,
        arguments=("--steps", "80"),
        options=("--on-hang", "stop", "--hang-after", "33"),
        exit_codes=(4,),
    ),
    "no-init": Drill(
        title="The script never joins: each process trains alone, and ends with 0",
        script="torch_alone.py",
        expects="JOIN010",
        workers=2,
        blames=(0, 1),
        inside=True,
        exit_codes=(0,),
    ),
    "observed-absence": Drill(
        title="Nobody is held, and a rank sleeps before init: the others block inside it",
        script="torch_ddp.py",
        expects="JOIN004",
        workers=3,
        blames=(0, 2),
        fault="asleep-before-init",
        inside=True,
        options=("--observe",),
        ends=False,
    ),
    "other-port": Drill(
        title="A rank looks for the master at another port",
        script="torch_ddp.py",
        expects="JOIN007",
        inside=True,
        exit_codes=(3,),
    ),
    "port-taken": Drill(
        title="The port where rank 0 is to listen is taken when it comes to its init",
        script="torch_ddp.py",
        expects="NET005",
        guilty=0,
        workers=2,
        inside=True,
    ),
    "probe-absent": Drill(
        title="An interpreter that loads no sitecustomize",
        script="torch_ddp.py",
        command=("{python}", "-I"),
        expects="HOST001",
        guilty=-1,
        workers=1,
        ends=False,
    ),
    "rank-out-of-range": Drill(
        title="A rank says that it is one more than the last that its world has",
        script="torch_ddp.py",
        expects="JOIN011",
        workers=3,
        guilty=2,
        blames=(3,),
        inside=True,
        exit_codes=(3,),
    ),
    "sizes-disagree": Drill(
        title="A rank believes in a smaller world",
        script="torch_ddp.py",
        expects="JOIN006",
        workers=3,
        inside=True,
        exit_codes=(3,),
    ),
    "wrong-rank": Drill(
        title="A rank says that it is rank 0, which is there already",
        script="torch_ddp.py",
        expects="JOIN005",
        workers=3,
        guilty=2,
        blames=(0,),
        inside=True,
        exit_codes=(3,),
    ),
}
