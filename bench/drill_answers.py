"""The right answers to the logs of bench/record_drills.py: what was staged, as far as logs can tell.

They were written from the fault itself, before the logs were judged. A rank that is killed, or stands still,
writes nothing: then its peers' logs can at most leave it over, and naming nobody is right as well.
"""

from __future__ import annotations

from typing import NamedTuple

LOST = "EXIT00[135]|LOG001|LOG002"
"""A peer went away: the others wrote that they lost it, or waited for it."""
WAITS = "LOG00[1-9]|EXIT005|EXIT009|JOIN004"
"""Nobody failed by himself: ranks waited for each other until a timeout."""
ABSENT = "JOIN00[134]|EXIT005|LOG001"
"""A rank did not come to the start."""


class Answer(NamedTuple):
    """What the first finding must say; regular expressions, as in bench/field_cases.py."""

    right: str
    """Rules that name the cause; "" if there is nothing to report."""
    who: str
    """Who is named; ``nobody`` where the logs do not show it."""
    next: str = "."
    """What the next step says."""
    forbidden: str = ""
    """What no finding may say; "" for nothing."""
    open: str = ""
    """Why it is not answered rightly yet; "" if it is."""


ANSWERS = {
    # Only the launcher's exit code has the abort: no rank writes a line of it.
    "aborts-at-exit": Answer("", "."),
    "address-space": Answer("RES00[13]|EXIT002", "worker 1", "memory|ulimit|torch_slow.py"),
    "asleep": Answer(WAITS, "nobody|worker 1", forbidden="worker [02] (?:raised|was killed)"),
    "asleep-before-init": Answer(ABSENT, "nobody|worker 1"),
    "compiled-asleep": Answer(WAITS, "nobody|worker 1"),
    "compiled-order": Answer(WAITS, "nobody|worker 1"),
    "crossed-groups": Answer(WAITS, "."),
    "ddp-validates-alone": Answer(WAITS, "."),
    "exception": Answer("EXIT002", "worker 1", "torch_ddp.py:208", "worker [02] raised"),
    "exits-3": Answer("EXIT00[35]", "nobody|worker 1", forbidden="worker [02] raised"),
    "file-left": Answer("JOIN008|EXIT002|JOIN004", "."),
    "fsdp-validates-alone": Answer(WAITS, "."),
    "jax-asleep": Answer(WAITS, "nobody|worker 1"),
    "jax-collectives-differ": Answer("EXIT009|EXIT005|LOG001", "."),
    "killed": Answer(LOST, "nobody|worker 1", forbidden="worker [02] raised"),
    "leaves-before-init": Answer(ABSENT, "nobody|worker 1"),
    "leaves-early": Answer("EXIT00[45]|LOG001", "nobody|worker 1", forbidden="worker [02] raised"),
    "loader-exception": Answer("EXIT002", "worker 1", r"torch_ddp.py:7\d"),
    "loader-worker-killed": Answer("EXIT007", "worker 1"),
    "loader-worker-stopped": Answer(WAITS, "nobody|worker 1"),
    "missing-send": Answer(WAITS, "."),
    "missing-batched-send": Answer(WAITS, "."),
    "nan-loss": Answer("NUM005|" + WAITS, "."),
    "never-comes": Answer("JOIN00[14]", "nobody|worker 3"),
    "new-group-on-some": Answer(WAITS, "nobody|worker 1"),
    "observed-absence": Answer(ABSENT, "nobody|worker 1"),
    "open-files": Answer("RES002|EXIT002", "worker 1", "ulimit|files|torch_slow.py"),
    "other-dtype": Answer("NUM001|" + WAITS, "."),
    "other-elements": Answer("NUM002|EXIT009|" + WAITS, "."),
    "other-order": Answer(WAITS, "."),
    "other-port": Answer(ABSENT + "|JOIN007", "nobody|worker 1"),
    "other-reduce": Answer("NUM003|" + WAITS, "."),
    "other-root": Answer("HANG010|" + WAITS, "."),
    "pair-asleep": Answer(WAITS, "nobody|worker 1"),
    "ps-dies-at-start": Answer("EXIT002", "ps 0", "tf1_ps.py:"),
    "ps-hidden": Answer("PS013|EXIT002", "worker 1"),
    "ps-killed": Answer(LOST + "|PS001", "nobody|ps 0"),
    "rank-out-of-range": Answer("JOIN011|EXIT002|JOIN00[14]", "nobody|worker [23]"),
    "rpc-actor-exits": Answer("EXIT00[35]", "nobody|worker 1"),
    "sender-raises": Answer("EXIT011|EXIT002", "worker 1", "torch_sender.py:"),
    "shared-group": Answer(WAITS, "."),
    "sharded-step-alone": Answer(WAITS, "."),
    "sizes-disagree": Answer("JOIN00[16]|JOIN004|EXIT005|LOG001", "nobody|worker 1"),
    "spawned-exception": Answer("EXIT002", "worker 1|process 1", "torch_spawned.py:"),
    "spawned-leaves": Answer("EXIT00[45]|LOG001", "nobody|worker 1"),
    "stopped": Answer(WAITS, "nobody|worker 1"),
    "stuck-in-python": Answer(WAITS, "nobody|worker 1"),
    "swapped-calls": Answer("NUM004|" + WAITS, "."),
    "tf-collectives-differ": Answer("EXIT009|EXIT005|EXIT002|LOG001", "."),
    "tf-exception": Answer("EXIT002", "worker 1", "tf_mwms.py:36", "worker [02] raised"),
    "tf-keras-3-fit": Answer("EXIT002", "worker 0|worker 1|nobody", "Keras|keras"),
    "tf-killed": Answer(LOST, "nobody|worker 1", forbidden="worker [02]"),
    "tf-leaves-early": Answer("EXIT00[45]|LOG00[12]", "nobody|worker 1"),
    "tf-one-file": Answer("EXIT002", "worker 0|nobody", "AutoShard|DATA|files|shard"),
    "tf-two-tasks": Answer("JOIN005|NET005|EXIT002|JOIN001", "."),
    "tf2-ps-killed": Answer(LOST + "|PS001|LOG012", "nobody|ps 0"),
    "tf2-ps-without": Answer("PS010|EXIT002", "."),
    "trainer-raises": Answer("EXIT011|EXIT002", "worker 1", "torch_threaded.py:"),
    "uneven-batches": Answer("DATA001|EXIT00[245]|LOG001", "nobody|worker 1"),
    "wrong-rank": Answer("JOIN00[145]|NET005|EXIT002|EXIT005|LOG001", "."),
}
