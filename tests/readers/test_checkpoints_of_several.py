"""What frameworks write where the members of a job do not read, save or feed the same: the cause is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosed_texts import diagnose, errors

MEGATRON = (
    "WARNING: on rank {rank} found iteration 300 in the metadata while max iteration across the ranks is "
    "400, replacing it with max iteration."
)
REPLICATE = (
    "Exception in device=TPU:{core}: Cannot replicate if number of devices (1) is different from 4"
)
RING = "2020-01-02 03:04:05.678901: E tensorflow/core/common_runtime/ring_alg.cc:279] "


@pytest.mark.parametrize(
    ("text", "cause", "fix"),
    [
        (
            f"{RING}Aborting RingReduce with Out of range: [_Derived_]End of sequence\n"
            "\t [[{{node IteratorGetNext}}]]",
            "ran out of input",
            "dataset.repeat()",
        ),
        (
            "2020-01-02 03:04:05.678901: E tensorflow/core/framework/op_kernel.cc:1622] OP_REQUIRES failed "
            "at collective_ops.cc:234 : OUT_OF_RANGE: End of sequence",
            "ran out of input",
            "dataset.repeat()",
        ),
        (
            f"{RING}Aborting RingReduce with Cancelled: [_Derived_]Cancelled\n"
            "2020-01-02 03:04:05.678902: W tensorflow/core/framework/op_kernel.cc:1622] OP_REQUIRES failed "
            "at collective_ops.cc:125 : Internal: Inconsistent output shapes, got [6], but expected is [3].\n"
            "\t [[{{node SGD/allreduce_2/CollectiveGather_2}}]]",
            "([6], and [3] was expected)",
            "drop_remainder=True",
        ),
        (
            "NotFoundError (see above for traceback): /d/model.ckpt-9_temp_11ab/part-00001-of-00002.index\n"
            "\t [[Node: save/MergeV2Checkpoints = MergeV2Checkpoints[delete_old_dirs=true]]]",
            "do not share one folder",
            "ls -ld DIR",
        ),
        (
            "2020-01-02 03:04:05.678901: W tensorflow/core/framework/op_kernel.cc:1651] OP_REQUIRES failed "
            "at save_restore_v2_ops.cc:184 : Not found: Unsuccessful TensorSliceReader constructor: Failed "
            "to find any matching files for /d/model.ckpt-40",
            "is not there on the host of the task that reads it",
            "ls -l /d/model.ckpt-40*",
        ),
        (
            '`ValueError: FAILED_PRECONDITION: Error writing "w/0.0" in OCDBT database at local file "/d/4.'
            'orbax-checkpoint-tmp-0/default/ocdbt.process_0/": Configuration mismatch on uuid: expected "aa" '
            'but received "bb"`',
            "each takes itself for process 0",
            "jax.process_index()",
        ),
        (
            "FileExistsError: [Errno 17] File exists: '/d/run/700.orbax-checkpoint-tmp-0'",
            "temporary folder",
            "remove the *.orbax-checkpoint-tmp*",
        ),
        (
            f"{REPLICATE.format(core=2)}{REPLICATE.format(core=1)}\nTraceback (most recent call last):\n",
            "1 XLA device, and the runtime counts 4",
            "before xmp.spawn",
        ),
    ],
)
def test_the_cause_is_told(tmp_path: Path, text: str, cause: str, fix: str) -> None:
    (finding,) = diagnose(tmp_path, text)
    assert cause in finding.summary and fix in finding.fix
    assert not finding.who and "echo $" not in finding.fix


def test_ranks_that_read_another_iteration_are_one_finding(tmp_path: Path) -> None:
    (finding,) = diagnose(tmp_path, "\n".join(MEGATRON.format(rank=rank) for rank in (5, 4, 7)))
    assert finding.summary.endswith("(the same for 4, 7)")
    assert {member.rank for member in finding.who} == {4, 5, 7}


def test_a_training_that_goes_on_from_the_latest_iteration_has_none(tmp_path: Path) -> None:
    steps = "\n".join(f" iteration {step}/ 900 | lm loss: 2.1E+00" for step in (410, 420, 430))
    assert not diagnose(tmp_path, f"{MEGATRON.format(rank=5)}\n{steps}")


@pytest.mark.parametrize(
    "line",
    [
        "tf.gather: Inconsistent output shapes, got [6], but expected is [3].",
        "found iteration 300 in the metadata",
    ],
)
def test_near_misses_are_left(tmp_path: Path, line: str) -> None:
    assert not errors(tmp_path, f"step 1 loss 2.0\n{line}\nstep 2 loss 1.9\nstep 3 loss 1.8")


def test_a_status_code_is_no_variable_to_be_set(tmp_path: Path) -> None:
    line = "ValueError: FAILED_PRECONDITION: the store is not set up"
    (finding,) = diagnose(tmp_path, f"starting\n{line}")
    assert "echo $" not in finding.fix
    line = "ValueError: environment variable ACME_RING_SIZE is not set"
    (finding,) = diagnose(tmp_path, f"starting\n{line}")
    assert "ACME_RING_SIZE" in finding.fix


def test_ranks_that_write_into_one_line_are_all_heard(tmp_path: Path) -> None:
    told = "".join(MEGATRON.format(rank=rank) for rank in (5, 10, 11))
    (found,) = diagnose(tmp_path, told)
    assert found.summary.startswith("rank 5 read") and "(the same for 10, 11)" in found.summary
