"""A rank whose collective waits on the GPU's queue waits for its peers.

The views in `recorded/` are of real jobs: two ranks on one H200, PyTorch 2.11, NCCL 2.28.9; rank 1 sleeps, or
has left the loop early.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from allaboard.analysis.collectives.queued_calls import (
    queued_group,
    reads_device_value,
    with_queued_calls,
)
from allaboard.facts import Frame, JobView, Member, Recorded
from allaboard.facts.samples import USER, recorded_collective, sample_stack
from allaboard.probe.adapters._torch.flight_recorder import NCCL_MARK
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import run_rules

RECORDED = Path(__file__).parent / "recorded"


def view_of(name: str) -> JobView:
    return msgspec.json.decode((RECORDED / f"nccl_{name}.json").read_bytes(), type=JobView)


def with_changes(view: JobView, rank: int, **changes: Any) -> JobView:
    members = tuple(
        msgspec.structs.replace(m, **changes) if m.who.rank == rank else m for m in view.members
    )
    return msgspec.structs.replace(view, members=members)


def in_queued_calls(view: JobView) -> JobView:
    return msgspec.structs.replace(view, members=with_queued_calls(view.members))


def ops(view: JobView) -> list[str]:
    return [m.op.name if m.op is not None else "" for m in in_queued_calls(view).members]


def summaries(view: JobView) -> list[str]:
    found = run_rules(in_queued_calls(view), load_catalogue().entries)
    return [claim.summary for entry, claim in found if not entry.rule.relations.last_resort]


@pytest.mark.parametrize(
    ("name", "place"), [("sleep", "train.py:63 in inject"), ("early", "train.py:143 in <module>")]
)
def test_the_rank_that_does_not_come_is_named(name: str, place: str) -> None:
    view = view_of(name)
    assert ops(view) == ["all_reduce", ""]
    assert summaries(view) == [f"worker 1 is asleep at {place}; the others wait for it"]


def entries(*completed: bool) -> tuple[Recorded, ...]:
    return tuple(
        recorded_collective(0, number, group=f"0 default_pg {NCCL_MARK}", completed=over)
        for number, over in enumerate(completed, 14)
    )


STEP = sample_stack(Frame("/v/site-packages/torch/nn/modules/linear.py", 134, "forward"), USER)
"""Where a program stands once the queue is full: no line of it reads a value."""


def test_the_recorder_proves_what_no_line_shows() -> None:
    full = with_changes(view_of("sleep"), 0, stack=STEP)
    assert ops(full) == ["", ""]
    assert ops(with_changes(full, 0, recorded=entries(True, False))) == ["all_reduce", ""]


def test_a_queue_that_is_done_is_waited_for_by_nobody() -> None:
    assert ops(with_changes(view_of("sleep"), 0, recorded=entries(True, True))) == ["", ""]


def test_of_gloo_the_recorder_tells_no_state() -> None:
    gloo = tuple(recorded_collective(0, n) for n in (14, 15))
    assert ops(with_changes(view_of("sleep"), 0, stack=STEP, recorded=gloo)) == ["", ""]


def member_0(**changes: Any) -> Member:
    return with_changes(view_of("sleep"), 0, **changes).members[0]


def test_a_gpu_that_computes_while_nobody_is_behind() -> None:
    view = view_of("sleep")
    assert ops(with_changes(view, 1, groups=view.members[0].groups)) == ["", ""]


def test_backends_whose_calls_return_when_they_are_over() -> None:
    declared = member_0().declared
    assert declared is not None and queued_group(member_0()) is not None
    on_cpus = msgspec.structs.replace(declared, backend="gloo")
    assert queued_group(member_0(declared=on_cpus)) is None
    by_default = msgspec.structs.replace(declared, backend="")
    assert queued_group(member_0(declared=by_default)) is not None
    assert queued_group(member_0(declared=by_default, notes={"torch": "2.13.0"})) is None


@pytest.mark.parametrize(
    "line",
    [
        "return total.item()",
        "losses.append(float(loss))",
        "print(loss)",
        "torch.cuda.synchronize()",
        "scores = logits.argmax(-1).cpu()",
        "x = x.to('cpu')",
        "flags = mask.tolist()",
        "if int(total[0]) != size:",
    ],
)
def test_lines_that_need_a_result_of_the_gpu(line: str) -> None:
    assert reads_device_value(sample_stack(Frame("/home/u/train.py", 3, "train", line)))


@pytest.mark.parametrize(
    "line",
    [
        "optimizer.step()",
        "for item in items:",
        "while not flag.is_set():",
        "time.sleep(5)",
        "x = np.linalg.svd(matrix)",
        "value = float(parse(row))",
        "data = queue.get()",
        "for name, value in table.items():",
    ],
)
def test_lines_that_need_none(line: str) -> None:
    assert not reads_device_value(sample_stack(Frame("/home/u/train.py", 3, "train", line)))


def test_without_a_black_box_who_reads_a_value_waits_for_the_idle_rank() -> None:
    view = view_of("sleep")
    bare = {"groups": (), "declared": None, "ops": 0, "step": 0}
    unprobed = with_changes(with_changes(view, 0, **bare), 1, **bare)
    assert summaries(unprobed) == [
        "worker 1 is asleep at train.py:63 in inject; the others wait for it"
    ]
    # One that computes may be who all wait for.
    assert summaries(with_changes(unprobed, 1, cpu=0.9)) == []
