"""A small training that saves in a thread, which gathers the ranks' values while the main one takes rank 0's
next weights. With --fault both use one group, and one rank's threads call in the other order.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

APART = 0.02
"""Seconds by which one of the two threads is late."""


def save(group, late):
    """Gather the values of all ranks on rank 0."""
    time.sleep(late)
    values = torch.ones(64)
    parts = [torch.empty(64) for _ in range(dist.get_world_size())]
    dist.gather(values, parts if dist.get_rank() == 0 else None, group=group)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    group = None if options.fault else dist.new_group()
    is_guilty = dist.get_rank() == options.guilty
    weights = torch.zeros(64)
    for step in range(1, options.steps + 1):
        saver = None
        if step % options.at_step == 0:
            if options.fault and options.mark and is_guilty:
                Path(options.mark).write_text(str(time.time()))
            saver = threading.Thread(target=save, args=(group, 0.0 if is_guilty else APART))
            saver.start()
            time.sleep(APART if is_guilty else 0.0)
        weights += 0.001 * step
        dist.broadcast(weights, 0)
        time.sleep(0.01)
        if saver is not None:
            saver.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
