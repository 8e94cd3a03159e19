"""Ranks that call different collectives, or the same ones in another order."""

from __future__ import annotations

from allaboard.contracts import Drill

DRILLS = {
    "collective-timeout": Drill(
        title=(
            "A rank sleeps, and its peers' very short timeout expires before a rule can report "
            "that they wait for it"
        ),
        script="torch_ddp.py",
        expects="EXIT005",
        fault="asleep",
        inside=True,
        arguments=("--timeout", "2"),
    ),
    "compiled-asleep": Drill(
        title=(
            "A rank sleeps while the others wait for it in a collective inside a torch.compile "
            "graph"
        ),
        script="torch_compiled.py",
        expects="HANG005",
        inside=True,
        ends=False,
    ),
    "compiled-order": Drill(
        title="In a torch.compile graph, a rank calls a gather where the others call an all-reduce",
        script="torch_compiled.py",
        expects="HANG020",
        fewest=3,
        inside=True,
        ends=False,
    ),
    "crossed-groups": Drill(
        title="A rank uses two process groups in the opposite order of the others: both sides wait",
        script="torch_by_hand.py",
        expects="HANG021",
        workers=2,
        blames=(0, 1),
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "missing-batched-send": Drill(
        title=(
            "A pipeline stage leaves out one message; all receives are started in batches and "
            "waited for later"
        ),
        script="torch_pipeline.py",
        fault="missing-send",
        arguments=("--batched",),
        expects="HANG024",
        workers=4,
        blames=(1, 2),
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "missing-send": Drill(
        title=(
            "A pipeline stage leaves out one message to the next stage; soon all stages wait for a "
            "message"
        ),
        script="torch_pipeline.py",
        expects="HANG024",
        workers=4,
        blames=(1, 2),
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "new-group-on-some": Drill(
        title=(
            "A rank does not call new_group for a group to which it does not belong; the job "
            "continues to train"
        ),
        script="torch_by_hand.py",
        expects="HANG016",
        workers=3,
        inside=True,
        ends=False,
    ),
    "other-dtype": Drill(
        title="A rank reduces integers where the others reduce floats",
        script="torch_by_hand.py",
        expects="NUM001",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "other-elements": Drill(
        title="A rank reduces six elements where the others reduce four",
        script="torch_by_hand.py",
        expects="NUM002",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "other-order": Drill(
        title="A rank calls a broadcast that the others do not call",
        script="torch_ddp.py",
        expects="HANG009",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "other-order-functional": Drill(
        title="A rank calls a functional broadcast, as DTensor does, that the others do not call",
        script="torch_ddp.py",
        expects="HANG009",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "other-order-unseen": Drill(
        title=(
            "A rank calls a broadcast that the others do not call, in a way that leaves no trace "
            "in Python"
        ),
        script="torch_ddp.py",
        expects="HANG006",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "other-reduce": Drill(
        title="A rank asks for the maximum where the others ask for the sum",
        script="torch_by_hand.py",
        expects="NUM003",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "other-root": Drill(
        title="A rank calls a broadcast with another root than the others",
        script="torch_by_hand.py",
        expects="HANG010",
        fewest=3,
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "pair-asleep": Drill(
        title="A rank sleeps; only its pair waits for it, and the other pair continues to train",
        script="torch_by_hand.py",
        expects="HANG005",
        workers=4,
        inside=True,
        arguments=("--pairs",),
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "parted": Drill(
        title="A rank loads an older checkpoint after DDP was built",
        script="torch_shards.py",
        expects="NUM006",
        fewest=3,
        inside=True,
        options=("--check-values", "5"),
        ends=False,
    ),
    "sender-raises": Drill(
        title=(
            "The thread that sends a value to rank 0 after every step raises; its rank trains on, "
            "and rank 0 waits"
        ),
        script="torch_sender.py",
        expects="HANG023",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "shared-group": Drill(
        title=(
            "A thread that saves uses the main thread's process group: on one rank their calls "
            "come in another order"
        ),
        script="torch_shared_group.py",
        expects="HANG022",
        workers=2,
        blames=(0, 1),
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "swapped-calls": Drill(
        title="A rank makes two calls of the same shape in the opposite order of the others",
        script="torch_by_hand.py",
        expects="NUM004",
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
}
