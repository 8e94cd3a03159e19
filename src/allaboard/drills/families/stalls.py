"""Ranks that stand still outside of any collective."""

from __future__ import annotations

from functools import partial

from allaboard.contracts import Drill
from allaboard.drills.base_rows import hang_drill, lasting_drill
from allaboard.launch.signals import continue_process, stop_process

ddp_hang_drill = partial(hang_drill, script="torch_ddp.py")

DRILLS = {
    "actor-failed": hang_drill(
        title="A process that fills a queue raises an exception, and the program waits for the next item",
        script="torch_actors.py",
        expects="HANG032",
        workers=1,
        guilty=-1,
    ),
    "asleep": ddp_hang_drill(
        title="A rank sleeps in the middle of training",
        expects="HANG005",
    ),
    "child-unread": ddp_hang_drill(
        title="A rank waits for the end of a program, and does not read what it writes: the pipe is full",
        expects="HANG018",
    ),
    "file-lock": ddp_hang_drill(
        title="A rank waits for a file lock that another process holds",
        expects="HANG004",
    ),
    "forked-native": hang_drill(
        title=(
            "A rank waits for a process that it has forked, in which OpenMP waits for threads that were not "
            "forked"
        ),
        script="torch_snapshots.py",
        expects="HANG018",
        allowed=("SLOW006",),
    ),
    "gil-held": ddp_hang_drill(
        title=(
            "A rank matches a regular expression that takes hours, while another of its threads "
            "waits for the GIL"
        ),
        expects="HANG015",
    ),
    "gil-held-aside": ddp_hang_drill(
        title=(
            "A thread beside the training waits in C without releasing the GIL; the training "
            "cannot continue"
        ),
        expects="HANG015",
    ),
    "input": ddp_hang_drill(
        title="A rank waits for input that nobody can type",
        expects="HANG013",
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
        title="A rank is in a library call that takes hours, and the others wait for it",
        script="torch_beside.py",
        expects="HANG025",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "75"),
        exit_codes=(4,),
        long="a call may take a minute",
    ),
    "nested-pool": hang_drill(
        title="All threads of a rank's pool wait for tasks that they have submitted to the same pool",
        script="torch_snapshots.py",
        expects="HANG005",
        allowed=("SLOW006",),
    ),
    "polls-for-a-file": lasting_drill(
        title=(
            "A rank polls for a file without a pause; samples show it at several lines of the loop"
        ),
        script="torch_ddp.py",
        expects="HANG002",
        workers=2,
    ),
    "queue-unread": hang_drill(
        title="A program waits for the end of a process, and does not read the queue that it fills",
        script="torch_actors.py",
        expects="HANG032",
        workers=1,
        guilty=-1,
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
        title="A rank waits for a program that it started and that never exits",
        script="torch_ddp.py",
        expects="HANG002",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "70"),
        exit_codes=(4,),
        allowed=("HANG018",),
        long="a minute must pass: waits-for-a-child shows the wait",
    ),
    "stuck-in-data-loader": Drill(
        title="A worker process of a rank's DataLoader reads from a source that never answers",
        script="torch_ddp.py",
        expects="HANG003",
        inside=True,
        arguments=("--loader-workers", "1"),
        options=("--on-hang", "stop", "--hang-after", "10"),
        exit_codes=(4,),
    ),
    "stuck-in-python": ddp_hang_drill(
        title="A rank loops forever in its own code",
        expects="HANG002",
    ),
    "two-locks": ddp_hang_drill(
        title="Two threads of a rank each hold the lock that the other wants",
        expects="HANG014",
    ),
    "own-lock": ddp_hang_drill(
        title="A signal handler of a rank wants a lock that the code which it interrupts holds",
        expects="HANG014",
    ),
    "uninterruptible": ddp_hang_drill(
        title=(
            "A rank waits in the kernel in state D: it starts a program whose file system does not answer"
        ),
        expects="HANG007",
    ),
    "waits-for-a-child": Drill(
        title=(
            "A rank waits for a slow program that it started; --on-hang stop does not end the job"
        ),
        script="torch_ddp.py",
        expects="HANG018",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "60"),
        arguments=("--steps", "90"),
        exit_codes=(0,),
        over=True,
    ),
    "waits-for-an-answer": ddp_hang_drill(
        title="A rank waits for the answer of a service that never sends one",
        expects="HANG027",
    ),
}
