"""Ranks that read different numbers of batches, or the same data."""

from __future__ import annotations

from functools import partial

from allaboard.drills.base_rows import certain_hang_drill, lasting_drill

_uneven_drill = partial(
    certain_hang_drill,
    script="torch_shards.py",
    expects="DATA001",
    exit_codes=(1, 4),
    allowed=("HANG009", "EXIT001", "EXIT002", "EXIT005"),
)

DRILLS = {
    "batch-sizes-differ": lasting_drill(
        title="A rank has another batch size than the others",
        script="torch_shards.py",
        expects="DATA003",
    ),
    "empty-replicas": lasting_drill(
        title="A global batch of two rows for four replicas of one process",
        script="tf_mirrored.py",
        expects="DATA004",
        workers=1,
        guilty=-1,
    ),
    "nan-loss": certain_hang_drill(
        title="A rank's data has a NaN in one batch",
        script="torch_shards.py",
        expects="NUM005",
    ),
    "nan-printed": lasting_drill(
        title="A rank's data has a NaN, and the loss can only be read where the job prints it",
        script="torch_delayed.py",
        expects="NUM009",
        blames=(0,),
    ),
    "flat-loss": lasting_drill(
        title="The optimizer has the parameters of a copy of the model",
        script="torch_flat.py",
        expects="NUM008",
        guilty=-1,
        long="the loss must not move for a minute",
    ),
    "one-batch": lasting_drill(
        title="A rank's dataset returns the same rows for every index",
        script="torch_shards.py",
        expects="DATA005",
    ),
    "same-batches": lasting_drill(
        title="The data is not sharded: every rank reads all of it",
        script="torch_shards.py",
        expects="DATA002",
        workers=3,
        guilty=0,
        blames=(0, 1, 2),
    ),
    "uneven-batches": _uneven_drill(
        title="A rank has two batches fewer than the others and continues after its loop",
    ),
    "uneven-passes": _uneven_drill(
        title="A rank has two batches fewer in each pass, and no rank waits for another between passes",
    ),
    "uneven-replicas": lasting_drill(
        title="A global batch of ten rows for four replicas of one process",
        script="tf_mirrored.py",
        expects="DATA004",
        workers=1,
        guilty=-1,
        long="as the empty replicas",
    ),
}
