"""Small members and jobs, for the examples that every rule brings along and for tests.

Ranks train on host ``a`` with pid 100 + rank; times are seconds, and "now" is 100.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from allaboard.facts.collective_calls import GroupState, Signature, Traced
from allaboard.facts.finding import Place, Who
from allaboard.facts.flight_records import Recorded, Recording
from allaboard.facts.job import JobView
from allaboard.facts.log_evidence import Heard, Overdue, Speaker, Watchdogs
from allaboard.facts.member import Declared, Exit, Member, Op, Phase, Raised
from allaboard.facts.stack import Frame, Stack

NOW = 100.0
USER = Frame("/home/u/train.py", 41, "train", "loss = step(batch)")
REDUCE = Frame(
    "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 2800, "all_reduce"
)


PEER_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
"""What gloo raises in a member whose peer has ended: type and message."""
EADDRINUSE = (
    "The server socket has failed to listen on any local network address. port: 29888, useIpv6: false, "
    "code: -98, name: EADDRINUSE, message: address already in use"
)
"""What PyTorch 2.13.0 raises on rank 0 where its port is taken."""


def sample_member(rank: int, **changes: Any) -> Member:
    """Return a member that trains; ``changes`` are fields of `Member`."""
    fields: dict[str, Any] = {
        "who": Who(index=rank, rank=rank, host="a", pid=100 + rank),
        "worker": rank,
        "phase": Phase.TRAINING,
        "phase_since": 50.0,
        "moved_at": 90.0,
        "framework": "torch",
        "round": 1,
        "declared": sample_declaration(rank),
        "step": 40,
        "step_at": 90.0,
        "ops": 40,
    }
    return Member(**(fields | changes))


def sample_declaration(rank: int, size: int = 3, **changes: Any) -> Declared:
    """Return the arguments of torch's init."""
    fields: dict[str, Any] = {
        "framework": "torch",
        "call": "init_process_group",
        "rank": rank,
        "world_size": size,
        "place": "tcp://127.0.0.1:20000",
        "origin": "RANK, MASTER_ADDR, MASTER_PORT",
    }
    return Declared(**(fields | changes))


def waiting_member(rank: int, **changes: Any) -> Member:
    """Return a member inside an all_reduce."""
    fields: dict[str, Any] = {
        "op": Op("all_reduce", 41, 90.0),
        "stack": sample_stack(REDUCE, USER),
    }
    return sample_member(rank, **(fields | changes))


def member_with_calls(rank: int, *signatures: Signature, size: int = 3, **changes: Any) -> Member:
    """Return a member that made these calls in the default group, or in ``group``."""
    group = changes.pop("group", "0")
    digest, path, calls, paths = 0, 0, [], []
    for signature in signatures:
        digest = (digest * 1000003 + signature.required) & 0xFFFFFFFF
        calls.append((digest, signature))
        path = (path * 1000003 + crc32(repr(signature.site).encode())) & 0xFFFFFFFF
        paths.append((len(calls), path))
    state = GroupState(
        name=group,
        round=1,
        number=len(calls),
        since=90.0,
        size=size,
        ranks=tuple(range(size)),
        marks=tuple((n + 1, d) for n, (d, _) in reversed(list(enumerate(calls)))),
        paths=tuple(reversed(paths)),
        last_call=signatures[-1] if signatures else None,
    )
    fields: dict[str, Any] = {
        "groups": (state,),
        "traces": (Traced(group, 1, 1, tuple(calls)),),
    }
    return sample_member(rank, **(fields | changes))


def sample_signature(op: str = "all_reduce", line: int = 41, **changes: Any) -> Signature:
    """Return a call at this line of train.py; all of what is given counts as required."""
    fields: dict[str, Any] = {"dtype": "float32", "shape": "4", "elements": 4}
    if op == "all_reduce":
        fields["reduce"] = "sum"
    fields |= changes
    shown = {k: v for k, v in fields.items() if k != "shape"}
    return Signature(
        op=op,
        required=crc32(repr((op, sorted(shown.items()))).encode()),
        site=Frame("/home/u/train.py", line, "train"),
        **fields,
    )


def sample_stack(*frames: Frame, samples: int = 8, moving: bool = False) -> Stack:
    """Return a stack that was sampled ``samples`` times over two seconds."""
    return Stack(frames=frames, taken_at=99.0, samples=samples, span=2.0, moving=moving)


def arrived_member(rank: int, size: int = 3, **changes: Any) -> Member:
    """Return a member that has stood at the door of init since 60."""
    fields: dict[str, Any] = {
        "phase": Phase.ARRIVED,
        "phase_since": 60.0,
        "declared": sample_declaration(rank, size),
        "step": 0,
        "ops": 0,
    }
    return sample_member(rank, **(fields | changes))


def coming_member(rank: int, **changes: Any) -> Member:
    """Return a member that is alive in its own code, before init."""
    fields: dict[str, Any] = {
        "phase": Phase.IMPORTED,
        "declared": None,
        "round": 0,
        "step": 0,
        "ops": 0,
    }
    return sample_member(rank, **(fields | changes))


def ended_member(rank: int, ended_at: float = 95.0, **how: Any) -> Member:
    """Return a member that ended; ``how`` are fields of `Exit`, or ``raised`` = (type, message) with
    ``frames``."""
    raised, frames = how.pop("raised", None), how.pop("frames", ())
    changes: dict[str, Any] = dict(how.pop("member", {}))
    if raised is not None:
        changes["raised"] = Raised(
            type=raised[0], message=raised[1], raised_at=ended_at, where=USER, frames=frames
        )
        how.setdefault("code", 1)
    return sample_member(rank, exit=Exit(ended_at=ended_at, **how), **changes)


def sample_evaluator(rank: int) -> Who:
    """Return an evaluator, which is launched beside those that train, as the last."""
    return Who(job="evaluator", index=0, rank=rank, host="a", pid=100 + rank)


def sample_job(*members: Member, **changes: Any) -> JobView:
    """Return a job of these members that is fine, at `NOW`."""
    fields: dict[str, Any] = {
        "now": NOW,
        "launched": 3,
        "members": members,
        "launched_at": 0.0,
        "rolled_at": 50.0,
        "progress_at": 99.5,
        "median_step": 0.1,
        "stall_after": 3.0,
    }
    return JobView(**(fields | changes))


def stalled_job(*members: Member, **changes: Any) -> JobView:
    """Return a job of these members in which nothing has moved for 10 s."""
    return sample_job(*members, **({"progress_at": 90.0} | changes))


def gathering_job(*members: Member, **changes: Any) -> JobView:
    """Return a job of these members before its roll call is complete."""
    return sample_job(*members, **({"rolled_at": None} | changes))


def led_job(*members: Member, **changes: Any) -> JobView:
    """Return a job of several hosts before its roll call is complete, as the agent that leads sees it."""
    return gathering_job(*members, **({"joined": True, "leads": True, "launched": 1} | changes))


def sample_heard(rule: str, says: str, line: str, rank: int = 0, **changes: Any) -> Heard:
    """Return a known message that one rank wrote."""
    speaker = Speaker(rank, line, Place(file=f"rank{rank}.log", line=7))
    fields: dict[str, Any] = {"rule": rule, "says": says, "speakers": (speaker,), "fix": "read on"}
    return Heard(**(fields | changes))


def recorded_collective(
    rank: int, number: int, op: str = "all_reduce", size: int = 4, **changes: Any
) -> Recorded:
    """Return one collective of the default group in a rank's recorder."""
    fields: dict[str, Any] = {
        "rank": rank,
        "group": "0 default_pg",
        "number": number,
        "op": op,
        "order": number,
        "sizes": ((size,),),
        "dtypes": ("Float",),
        "frames": (REDUCE, USER),
    }
    return Recorded(**(fields | changes))


def sample_recording(*entries: Recorded) -> Recording:
    """Return the recorders of three ranks."""
    return Recording(entries=entries, ranks=(0, 1, 2), members={"0 default_pg": (0, 1, 2)})


def overdue_collective(rank: int, number: int = 0, enqueued: int = 133, **changes: Any) -> Overdue:
    """Return the words of a rank's watchdog about the default group: call ``number`` was over its time, or
    none (0)."""
    fields: dict[str, Any] = {
        "group": "0(default_pg)",
        "op": "ALLREDUCE" if number else "",
        "elements": (1024, 1024) if number else (0, 0),
        "completed": number - 1 if number else enqueued,
        "member": rank,
        "line": "Watchdog caught collective operation timeout",
        "place": Place(file=f"rank{rank}.log", line=7),
    }
    return Overdue(rank=rank, number=number, enqueued=enqueued, **(fields | changes))


def sample_watchdogs(*words: Overdue, other_ranks: tuple[int, ...] = ()) -> Watchdogs:
    """Return the words of the watchdogs of several ranks; of ``known`` ranks there is a log, too."""
    return Watchdogs(reports=words, ranks=tuple({*other_ranks, *(o.rank for o in words)}))


SERVING = Op("Server.join", 1, 60.0)


def ps_member(name: str, index: int, **changes: Any) -> Member:
    """Return a member of a job with parameter servers: worker 0, worker 1, ps 0 of TensorFlow 1 by default,
    numbered 0 to 2; a ps serves."""
    number = changes.pop("number", index + (2 if name == "ps" else 0))
    cluster = {"worker:0": "127.0.0.1:1", "worker:1": "127.0.0.1:2", "ps:0": "127.0.0.1:3"}
    fields: dict[str, Any] = {
        "who": Who(job=name, index=index, rank=number, host="a", pid=100 + number),
        "framework": "tensorflow",
        "task": f"{name}-{index}",
        "declared": sample_declaration(
            number, framework="tensorflow", call="tf.distribute.Server", job=name, index=index,
            cluster=cluster, place="",
        ),
    }  # fmt: skip
    if name == "ps":
        fields |= {"op": SERVING, "step": 0, "ops": 1, "phase": Phase.JOINED}
    return sample_member(number, **(fields | changes))
