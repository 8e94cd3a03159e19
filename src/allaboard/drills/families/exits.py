"""Ranks that end: killed, by an exception, too early, or in a process of their own."""

from __future__ import annotations

from functools import partial

from allaboard.contracts import Drill
from allaboard.launch.signals import kill_process

ddp_drill = partial(Drill, script="torch_ddp.py", inside=True)

DRILLS = {
    "aborts-at-exit": ddp_drill(
        title="A rank trains to its end and aborts while its interpreter shuts down",
        expects="EXIT006",
        arguments=("--steps", "80"),
        allowed=("EXIT005",),
    ),
    "exception": ddp_drill(
        title="A rank raises an exception in the middle of training",
        expects="EXIT002",
    ),
    "closes-its-descriptors": ddp_drill(
        title="A rank closes all of its descriptors, as a daemon does, and with them its connections",
        expects="EXIT001",
    ),
    "exits-3": ddp_drill(
        title="A rank ends with exit code 3 and no exception",
        expects="EXIT003",
    ),
    "killed": Drill(
        title="A rank is killed by SIGKILL in the middle of training",
        script="torch_ddp.py",
        expects="EXIT001",
        outside=kill_process,
    ),
    "leaves-early": ddp_drill(
        title="A rank ends with exit code 0 while the others train",
        expects="EXIT004",
    ),
    "loader-exception": ddp_drill(
        title=(
            "A rank's dataset raises in a worker process of its DataLoader; the line to fix is in "
            "the dataset"
        ),
        expects="EXIT002",
        arguments=("--loader-workers", "1"),
    ),
    "loader-worker-killed": ddp_drill(
        title="A worker process of a rank's DataLoader is killed by SIGKILL",
        expects="EXIT007",
        arguments=("--loader-workers", "1"),
    ),
    "rpc-actor-exits": Drill(
        title=(
            "In a job of PyTorch's RPC alone, an actor ends with exit code 3 while the learner "
            "waits for its answer"
        ),
        script="torch_rpc.py",
        expects="EXIT003",
        inside=True,
    ),
    "spawned-exception": Drill(
        title=(
            "A rank started by torch.multiprocessing.spawn raises; spawn itself reports whichever "
            "rank failed first"
        ),
        script="torch_spawned.py",
        expects="EXIT002",
        workers=1,
        inside=True,
    ),
    "spawned-leaves": Drill(
        title=(
            "A rank started by torch.multiprocessing.spawn ends with exit code 0 while the others train"
        ),
        script="torch_spawned.py",
        expects="EXIT004",
        workers=1,
        inside=True,
    ),
    "trainer-raises": Drill(
        title="The thread that trains raises; the main thread waits for it and exits with code 0",
        script="torch_threaded.py",
        expects="EXIT011",
        inside=True,
        exit_codes=(0,),
    ),
}
