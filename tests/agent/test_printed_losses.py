"""Losses that are not finite are counted in what a worker prints."""

from __future__ import annotations

import pytest

from allaboard.agent.output.printed_losses import PrintedLosses
from allaboard.facts.time_shares import PrintedLoss


def printed(*reads: str) -> PrintedLoss | None:
    """Return what is known after these reads, each of whole lines."""
    losses = PrintedLosses()
    for read in reads:
        rows = read.encode().splitlines(keepends=True)
        losses.add_rows(rows, b"".join(rows))
    return losses.not_finite


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (["step 1 loss 0.5\n", "step 2 loss nan\nstep 3 loss nan\n"], (2, "step 2 loss nan")),
        (["{'loss': nan, 'epoch': 1.0}\n"] * 3, (3, "{'loss': nan, 'epoch': 1.0}")),
        (["Epoch 3: loss=inf\n"], (1, "Epoch 3: loss=inf")),
        (["loss: tensor(nan, device='cuda:0')\n"], (1, "loss: tensor(nan, device='cuda:0')")),
        (["loss nan\n", "a line\n", "loss NaN\n"], (2, "loss nan")),
        (["loss nan\n", "loss 0.4\n"], None),
        (["loss 0.4\n", "val_loss nan\n"], None),
        (["best loss inf\n"], None),
        (["INFO: information about nandina\n"], None),
        (["Validation loss: nan\n", "dev_loss: nan\n", "Dev: 10%| loss=nan\n"], None),
        (['{"loss": NaN, "split": "valid"}\n'], None),
        (["best so far: loss inf\n", "smallest loss inf\n", "max_loss: inf\n"], None),
        (["g_loss: 0.2 d_loss: inf\n", "loss 0.5 (cls loss 0.2, box loss nan)\n"], None),
        (["loss is nan, skipping batch\n", "loss inf: skipped\n"], None),
        (["loss=nan-safe\n", "loss=infonce\n", "loss: nanmean\n"], None),
        (["loss_scale: inf\n", "packet loss: nan\n"], None),
        (
            ["Epoch 0: 5/10 [00:01, train_loss_step=nan.0]\n"] * 3,
            "Epoch 0: 5/10 [00:01, train_loss_step=nan.0]",
        ),
        (["{'loss': 'nan', 'grad_norm': 'nan'}\n"] * 3, "{'loss': 'nan', 'grad_norm': 'nan'}"),
        (["loss: Array(nan, dtype=float32)\n"] * 3, "loss: Array(nan, dtype=float32)"),
        (
            ["lm loss: NAN | number of skipped iterations: 0 |\n"] * 3,
            "lm loss: NAN | number of skipped iterations: 0 |",
        ),
        (["train loss nan, val loss nan\n"] * 3, "train loss nan, val loss nan"),
        (["/data/test/train.py: loss nan\n"] * 3, "/data/test/train.py: loss nan"),
        (["val/test/loss: nan\n", "eval/loss=nan\n"], None),
    ],
)
def test_what_is_printed(reads: list[str], expected: tuple[int, str] | str | None) -> None:
    if isinstance(expected, str):
        expected = (len(reads), expected)
    assert printed(*reads) == (PrintedLoss(*expected) if expected is not None else None)


def test_a_bar_counts_once_for_each_state() -> None:
    losses = PrintedLosses()
    for row in (b" 10%| 1/10 loss=nan", b" 10%| 1/10 loss=nan", b" 20%| 2/10 loss=nan", b""):
        losses.add_live_row(row)
    assert losses.not_finite == PrintedLoss(2, "10%| 1/10 loss=nan")


def test_a_bar_that_rarely_brings_a_new_loss_does_not_show_many() -> None:
    losses = PrintedLosses()
    shown = [0.5] * 4 + ["nan"] * 4 + [0.4] * 4
    found = []
    for step, loss in enumerate(shown):
        losses.add_live_row(f"{step}/100 loss={loss}".encode())
        found.append(losses.not_finite)
    assert [f.bad for f in found if f is not None] == [1]


def test_of_much_output_the_last_rows_are_read() -> None:
    assert printed("loss nan\n" * 1000) == PrintedLoss(50, "loss nan")
