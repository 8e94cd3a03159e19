"""The losses of a process over its whole training, as means over equal parts of it, in constant memory."""

from __future__ import annotations

from allaboard.facts import LossCourse

MAX_BLOCKS = 16
"""Blocks before each two become one: a course always has 8 to 15 complete ones."""
FIRST_SAMPLES = 8
"""Losses that the mean of the beginning is of."""


class LossBlocks:
    """Means over the losses that were seen, one for each sample in which both step and loss are new.

    A loss that repeats to the last digit is left out: the probe keeps the last one that it saw, also where
    the program goes on with losses on a device, which are not read.
    """

    __slots__ = (
        "_begin", "_blocks", "_end", "_first_sum", "_last_loss", "_lowest", "_pending", "_samples", "_size",
    )  # fmt: skip

    def __init__(self) -> None:
        self._samples = 0
        self._size = 1
        """Losses in a block."""
        self._blocks: list[float] = []
        """Sums of the complete blocks."""
        self._pending = self._first_sum = 0.0
        self._begin = self._end = 0.0, 0
        """Time and step of the first and of the last loss."""
        self._last_loss = self._lowest = float("inf")

    def add_loss(self, sampled_at: float, step: int, loss: float) -> None:
        """Take in the last loss after so many steps."""
        if loss == self._last_loss or (self._samples and step <= self._end[1]):
            return
        self._last_loss, self._lowest = loss, min(loss, self._lowest)
        self._end = sampled_at, step
        if not self._samples:
            self._begin = self._end
        self._samples += 1
        if self._samples <= FIRST_SAMPLES:
            self._first_sum += loss
        self._pending += loss
        if self._samples % self._size == 0:
            self._blocks.append(self._pending)
            self._pending = 0.0
            if len(self._blocks) == MAX_BLOCKS:
                pairs = zip(self._blocks[::2], self._blocks[1::2], strict=True)
                self._blocks = [a + b for a, b in pairs]
                self._size *= 2

    @property
    def course(self) -> LossCourse | None:
        """The course so far; None before `FIRST_SAMPLES` losses."""
        if self._samples < FIRST_SAMPLES:
            return None
        means = [total / self._size for total in self._blocks]
        return LossCourse(
            samples=self._samples,
            first_step=self._begin[1],
            last_step=self._end[1],
            span=self._end[0] - self._begin[0],
            first_mean=self._first_sum / FIRST_SAMPLES,
            lowest=self._lowest,
            lowest_mean=min(means),
            highest_mean=max(means),
        )
