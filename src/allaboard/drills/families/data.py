"""Ranks that read different numbers of batches, or the same data."""

from __future__ import annotations

from allaboard.contracts import Drill

DRILLS = {
    "batch-sizes-differ": Drill(
        title="A rank has another batch size than the others",
        script="torch_shards.py",
        expects="DATA003",
        inside=True,
        ends=False,
    ),
    "empty-replicas": Drill(
        title="A global batch of two rows for four replicas of one process",
        script="tf_mirrored.py",
        expects="DATA004",
        workers=1,
        guilty=-1,
        inside=True,
        ends=False,
    ),
    "nan-loss": Drill(
        title="A rank's data has a NaN in one batch",
        script="torch_shards.py",
        expects="NUM005",
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "same-batches": Drill(
        title="The data is not sharded: every rank reads all of it",
        script="torch_shards.py",
        expects="DATA002",
        workers=3,
        inside=True,
        guilty=0,
        blames=(0, 1, 2),
        ends=False,
    ),
    "uneven-batches": Drill(
        title="A rank has two batches fewer than the others and continues after its loop",
        script="torch_shards.py",
        expects="DATA001",
        inside=True,
        options=("--on-hang", "stop"),
        exit_codes=(1, 4),
        allowed=("HANG009", "EXIT001", "EXIT002", "EXIT005"),
    ),
    "uneven-replicas": Drill(
        title="A global batch of ten rows for four replicas of one process",
        script="tf_mirrored.py",
        expects="DATA004",
        workers=1,
        guilty=-1,
        inside=True,
        ends=False,
        long="as the empty replicas",
    ),
}
