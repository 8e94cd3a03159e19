"""Assertions that kernels wrote before they failed, told with the error of CUDA that follows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.diagnosis.wordings.kernel_assertions import ASSERTION_WORDS, DEVICE_ASSERTION
from allaboard.facts import Heard


def with_kernel_assertions(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages, with the failed assertion of a kernel as what CUDA's error means.

    CUDA says only that an assertion failed. Which one, the kernel itself wrote, on the same rank.
    """
    assertions = [h for h in heard if ASSERTION_WORDS in h.says]
    amended = []
    for message in heard:
        ranks = {s.rank for s in message.speakers}
        same_rank = [h for h in assertions if not ranks.isdisjoint(s.rank for s in h.speakers)]
        if message.says == DEVICE_ASSERTION.says and same_rank:
            message = msgspec.structs.replace(message, says=same_rank[0].says, fix=same_rank[0].fix)
        amended.append(message)
    return amended
