"""What it costs to find out which parameter a collective is called with, in a tight loop. Run by
``bench/tensor_numbers.py``, with the probe in this process."""

import time

import torch
from _allaboard_probe.adapters._torch.tensor_numbers import numbers
from torch import nn

LAYERS, REPEATS = 100, 9
model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(LAYERS)))
weights = [p for p in model.parameters() if p.dim() == 2]


def new_gradients():
    for weight in weights:
        weight.grad = torch.empty(64, 64)


def least(function, count):
    """CPU time (us) of one round of a function, the least of several measurements."""
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        for _ in range(count):
            function()
        times.append((time.process_time() - begin) / count)
    return min(times) * 1e6


def find_all():
    for weight in weights:
        numbers.find(weight.grad, 4096)


def visit_all():
    for weight in weights:
        weight.grad  # noqa: B018


def step():
    new_gradients()
    find_all()


def step_alone():
    new_gradients()
    visit_all()


def other_size(sizes=numbers.sizes):
    for _ in weights:
        7777 in sizes  # noqa: B015


def nothing():
    for _ in weights:
        pass


new_gradients()
assert len(numbers.sizes) == 2 and numbers.find(weights[5].grad, 4096), "nothing is registered"
print(f"a gradient where it was: {(least(find_all, 200) - least(visit_all, 200)) / LAYERS:.2f} us")
print(f"gradients that moved: {(least(step, 50) - least(step_alone, 50)) / LAYERS:.2f} us")
print(f"a size of no tensor: {(least(other_size, 500) - least(nothing, 500)) / LAYERS:.3f} us")
