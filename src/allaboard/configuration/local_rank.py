"""Numbers of tasks on their host: which tasks other ranks wait for, and which one speaks for the host."""

from __future__ import annotations

from collections.abc import Mapping

from allaboard.configuration.resolve import resolve
from allaboard.facts import whole_number
from allaboard.facts.configuration.source_variables import variables_of

_OF_LAUNCHERS = variables_of("local_rank", without=("torch_env",))
"""Local ranks that a launcher sets. LOCAL_RANK is also set by people who start each rank in a terminal of its
own, and then says nothing about who was started first."""
_TORCHRUN = "TORCHELASTIC_RUN_ID"


def is_first_on_host(environment: Mapping[str, str]) -> bool:
    """Return True unless a launcher started another task of this host before this one."""
    names = ("LOCAL_RANK", *_OF_LAUNCHERS) if environment.get(_TORCHRUN) else _OF_LAUNCHERS
    texts = (environment.get(name, "") for name in names)
    return whole_number(next((text for text in texts if text), "0")) == 0


def is_local_rank_zero(environment: Mapping[str, str]) -> bool:
    """Return True if the local rank in force is 0, or none is said."""
    local_rank = resolve(environment).values.get("local_rank")
    return local_rank is None or local_rank.integer == 0
