"""Ranks that stand still outside of any collective."""

from __future__ import annotations

from allaboard.contracts import Drill
from allaboard.launch.signals import continue_process, stop_process

DRILLS = {
    "asleep": Drill(
        title="A rank sleeps in the middle of training",
        script="torch_ddp.py",
        expects="HANG005",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "file-lock": Drill(
        title="A rank waits for a file lock that another process holds",
        script="torch_ddp.py",
        expects="HANG004",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "gil-held": Drill(
        title=(
            "A rank matches a regular expression that takes hours, while another of its threads "
            "wants to run"
        ),
        script="torch_ddp.py",
        expects="HANG015",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "gil-held-aside": Drill(
        title=(
            "A thread beside the training waits in C without letting the GIL go; the training "
            "cannot go on"
        ),
        script="torch_ddp.py",
        expects="HANG015",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "input": Drill(
        title="A rank asks a question that nobody can answer",
        script="torch_ddp.py",
        expects="HANG013",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "loader-worker-stopped": Drill(
        title="A worker process of a rank's DataLoader is stopped by SIGSTOP",
        script="torch_ddp.py",
        expects="HANG003",
        inside=True,
        arguments=("--loader-workers", "1"),
        options=("--on-hang", "stop", "--hang-after", "10"),
        exit_codes=(4,),
    ),
    "long-call": Drill(
        title="A rank is in a call of a library that takes hours, and the others wait for it",
        script="torch_beside.py",
        expects="HANG025",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "75"),
        exit_codes=(4,),
        long="a call may take a minute",
    ),
    "polls-for-a-file": Drill(
        title=(
            "A rank asks for a file without a pause, now in the question, now at the line that asks"
        ),
        script="torch_ddp.py",
        expects="HANG002",
        workers=2,
        inside=True,
        ends=False,
    ),
    "stopped": Drill(
        title="A rank is stopped by SIGSTOP in the middle of training",
        script="torch_ddp.py",
        expects="HANG001",
        outside=stop_process,
        heal=continue_process,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "stuck-in-child": Drill(
        title="A rank waits for a program that it started and that never ends",
        script="torch_ddp.py",
        expects="HANG002",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "70"),
        exit_codes=(4,),
        allowed=("HANG018",),
        long="a minute must pass: waits-for-a-child shows the wait",
    ),
    "stuck-in-data-loader": Drill(
        title="A rank's DataLoader process reads from a place that never answers",
        script="torch_ddp.py",
        expects="HANG003",
        inside=True,
        arguments=("--loader-workers", "1"),
        options=("--on-hang", "stop", "--hang-after", "10"),
        exit_codes=(4,),
    ),
    "stuck-in-python": Drill(
        title="A rank spins in a loop of its own code",
        script="torch_ddp.py",
        expects="HANG002",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "two-locks": Drill(
        title="Two threads of a rank each hold the lock that the other wants",
        script="torch_ddp.py",
        expects="HANG014",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "uninterruptible": Drill(
        title="A rank waits in the kernel in state D: it starts a program whose files do not answer",
        script="torch_ddp.py",
        expects="HANG007",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "waits-for-a-child": Drill(
        title=(
            "A rank waits for a program that it started and that takes its time; --on-hang stop "
            "lets it"
        ),
        script="torch_ddp.py",
        expects="HANG018",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "60"),
        arguments=("--steps", "90"),
        exit_codes=(0,),
        over=True,
    ),
}
