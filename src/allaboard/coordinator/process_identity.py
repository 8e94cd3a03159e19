"""Which member of its job a process is: what it declared itself comes before what its environment said."""

from __future__ import annotations

from allaboard.facts import Declared, Who
from allaboard.protocol.process_keys import split_process_key


def identify_process(
    key: int,
    host: str,
    worker: int,
    rank: int,
    task: tuple[str, int] | None,
    declared: Declared | None,
) -> Who:
    """Return who a process is.

    ``key`` is its event key, ``worker`` its number among the workers of its agent, ``rank`` that of its
    environment (-1 if it has none), ``task`` the job and index that it was started as, or joined as.
    """
    if declared is not None and (declared.world_size != 1 or rank < 0):
        # A process that takes itself to be alone keeps the rank of its environment.
        rank = declared.rank
    job, index = "worker", -1
    if task is not None:
        job, index = task
    elif declared is not None and declared.world_size > 1:
        index = declared.index
    if index < 0:
        # On another host, the worker's number would be taken for a rank.
        fallback = -1 if split_process_key(key)[0] else worker
        index = rank if rank >= 0 else fallback
    return Who(
        job=declared.job if declared is not None else job,
        index=index,
        rank=rank,
        host=host,
        # Without the number of the agent, which a process on another host has above its pid:
        # see `process_keys`.
        pid=key & 0xFFFFFFFF,
    )
