"""Ranks that call different collectives, or the same ones in another order."""

from __future__ import annotations

from functools import partial

from allaboard.contracts import Drill
from allaboard.drills.base_rows import certain_hang_drill, hang_drill, lasting_drill

mismatch_drill = partial(certain_hang_drill, fewest=3)

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
    "compiled-asleep": lasting_drill(
        title=(
            "A rank sleeps while the others wait for it in a collective inside a torch.compile graph"
        ),
        script="torch_compiled.py",
        expects="HANG005",
    ),
    "compiled-order": lasting_drill(
        title="In a torch.compile graph, a rank calls a gather where the others call an all-reduce",
        script="torch_compiled.py",
        expects="HANG020",
        fewest=3,
    ),
    "crossed-groups": hang_drill(
        title="A rank uses two process groups in the opposite order of the others: both sides wait",
        script="torch_by_hand.py",
        expects="HANG021",
        workers=2,
        blames=(0, 1),
    ),
    "crossed-tensors": lasting_drill(
        title="A rank reduces gradients of one shape in the order of a dict that it filled in another order",
        script="torch_by_name.py",
        expects="NUM007",
        workers=2,
        blames=(0, 1),
    ),
    "ddp-validates-alone": mismatch_drill(
        title="Rank 0 alone validates with the DDP model while the others wait in a barrier",
        script="torch_validates.py",
        expects="HANG009",
        guilty=0,
    ),
    "fsdp-validates-alone": mismatch_drill(
        title="Rank 0 alone validates with an FSDP model while the others wait in a barrier",
        script="torch_validates.py",
        expects="HANG009",
        guilty=0,
    ),
    "missing-batched-send": hang_drill(
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
    ),
    "missing-send": hang_drill(
        title=(
            "A pipeline stage leaves out one message to the next stage; soon all stages wait for a message"
        ),
        script="torch_pipeline.py",
        expects="HANG024",
        workers=4,
        blames=(1, 2),
    ),
    "new-group-order": lasting_drill(
        title="A rank creates two groups in another order than the others, and the job hangs in new_group",
        script="torch_by_hand.py",
        expects="HANG016",
        workers=3,
    ),
    "new-group-on-some": lasting_drill(
        title=(
            "A rank does not call new_group for a group to which it does not belong; the job "
            "continues to train"
        ),
        script="torch_by_hand.py",
        expects="HANG016",
        workers=3,
    ),
    "other-dtype": mismatch_drill(
        title="A rank reduces integers where the others reduce floats",
        script="torch_by_hand.py",
        expects="NUM001",
    ),
    "other-elements": mismatch_drill(
        title="A rank reduces six elements where the others reduce four",
        script="torch_by_hand.py",
        expects="NUM002",
    ),
    "other-order": mismatch_drill(
        title="A rank calls a broadcast that the others do not call",
        script="torch_ddp.py",
        expects="HANG009",
    ),
    "other-order-functional": mismatch_drill(
        title="A rank calls a functional broadcast, as DTensor does, that the others do not call",
        script="torch_ddp.py",
        expects="HANG009",
    ),
    "other-order-unseen": hang_drill(
        title=(
            "A rank calls a broadcast that the others do not call, in a way that leaves no trace in Python"
        ),
        script="torch_ddp.py",
        expects="HANG006",
        fewest=3,
    ),
    "other-reduce": mismatch_drill(
        title="A rank asks for the maximum where the others ask for the sum",
        script="torch_by_hand.py",
        expects="NUM003",
    ),
    "other-root": mismatch_drill(
        title="A rank calls a broadcast with another root than the others",
        script="torch_by_hand.py",
        expects="HANG010",
    ),
    "pair-asleep": hang_drill(
        title="A rank sleeps; only its pair waits for it, and the other pair continues to train",
        script="torch_by_hand.py",
        expects="HANG005",
        workers=4,
        arguments=("--pairs",),
    ),
    "parted": lasting_drill(
        title="A rank loads an older checkpoint after DDP was built",
        script="torch_shards.py",
        expects="NUM006",
        fewest=3,
        options=("--check-values", "5"),
    ),
    "sender-raises": hang_drill(
        title=(
            "The thread that sends a value to rank 0 after every step raises; its rank trains on, "
            "and rank 0 waits"
        ),
        script="torch_sender.py",
        expects="HANG023",
    ),
    "shared-group": hang_drill(
        title=(
            "A thread that saves uses the main thread's process group: on one rank their calls "
            "come in another order"
        ),
        script="torch_shared_group.py",
        expects="HANG022",
        workers=2,
        blames=(0, 1),
    ),
    "sharded-step-alone": mismatch_drill(
        title="Rank 0 alone steps an optimizer whose state is sharded, which broadcasts what it updated",
        script="torch_validates.py",
        expects="HANG009",
        guilty=0,
    ),
    "swapped-calls": certain_hang_drill(
        title="A rank makes two calls of the same shape in the opposite order of the others",
        script="torch_by_hand.py",
        expects="NUM004",
    ),
}
