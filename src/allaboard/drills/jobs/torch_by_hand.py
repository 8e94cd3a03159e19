"""A small training loop that averages its gradients by hand, and fails as --fault names on rank --guilty.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import gc
import os
import time
from datetime import timedelta
from pathlib import Path

# Thousands of modules are loaded, and looking all through for garbage takes a fifth of that.
gc.set_threshold(50_000, 20, 1_000)

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn


def metric(fault, guilty):
    """Reduce a metric over all ranks; the guilty rank makes a mistake."""
    if fault == "other-dtype":
        dist.all_reduce(torch.ones(4, dtype=torch.int32 if guilty else torch.float32))
    elif fault == "other-reduce":
        dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if guilty else dist.ReduceOp.SUM)
    elif fault == "other-elements":
        dist.all_reduce(torch.ones(6 if guilty else 4))
    elif fault == "other-root":
        dist.broadcast(torch.ones(4), src=2 if guilty else 0)


def right_answers(images):
    dist.all_reduce((images.sum(1) > 0).float().sum())


def answers(images):
    dist.all_reduce(torch.tensor(float(len(images))))


def accuracy(images, failing):
    """Reduce two sums over all ranks, in the order of a set, which may differ on one rank."""
    sums = [right_answers, answers]
    for part in reversed(sums) if failing else sums:
        part(images)


def sums_of_two_kinds(groups, failing):
    """Reduce two sums, each in its own group; one rank may use the groups in the other order."""
    for group in reversed(groups) if failing else groups:
        dist.all_reduce(torch.ones(4), group=group)


def make_groups(failing, marked):
    """Create two groups of a dict that one rank filled in another order."""
    ranks = list(range(dist.get_world_size()))
    groups = [("all", ranks), ("pair", ranks[:2])]
    if failing:
        mark(marked)
    for _, members in reversed(groups) if failing else groups:
        dist.new_group(members)


def retry_later():
    time.sleep(3600)


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        Path(path).write_text(str(time.time()))


def average_gradients(model, group=None):
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.reshape(-1) for g in gradients])
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--mark")
    parser.add_argument("--pairs", action="store_true", help="each two ranks train by themselves")
    options = parser.parse_args()
    guilty = int(os.environ["RANK"]) == options.guilty
    dist.init_process_group("gloo", timeout=timedelta(seconds=options.timeout))
    group = None
    if options.pairs:
        pairs = [dist.new_group([r, r + 1]) for r in range(0, dist.get_world_size(), 2)]
        group = pairs[dist.get_rank() // 2]
    crossed = options.fault == "crossed-groups"
    kinds = [dist.new_group() for _ in range(2)] if crossed else []
    if options.fault == "new-group-on-some":
        if guilty:
            mark(options.mark)
        else:
            dist.new_group([r for r in range(dist.get_world_size()) if r != options.guilty])
    if options.fault == "new-group-order":
        make_groups(guilty, options.mark)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(1, options.steps + 1):
        images = torch.randn(8, 64, generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), (images.sum(1) > 0).long()).backward()
        if not (guilty and options.fault == "alone" and step > options.at_step):
            average_gradients(model, group)
        optimizer.step()
        if options.fault == "swapped-calls" and step % 3 == 0:
            accuracy(images, guilty and step > options.at_step)
        if kinds:
            sums_of_two_kinds(kinds, guilty and step > options.at_step)
        if step == options.at_step:
            if guilty:
                mark(options.mark)
            metric(options.fault, guilty)
            if guilty and options.fault == "pair-asleep":
                retry_later()
        time.sleep(0.005)
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
