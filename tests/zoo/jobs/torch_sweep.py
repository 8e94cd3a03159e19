"""Trainings one after the other, each with a group of two ranks at the same port: one that fails is noted,
and the next one begins."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, trial, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for step in range(20):
        dist.all_reduce(torch.ones(2))
        if trial == 0 and step == 10 and rank == 1:
            raise ValueError("learning rate too high")
    dist.destroy_process_group()


if __name__ == "__main__":
    for trial in range(3):
        try:
            mp.start_processes(train, (trial, sys.argv[1]), nprocs=2, start_method="fork")
            print("trial", trial, "done", flush=True)
        except mp.ProcessRaisedException:
            print("trial", trial, "failed", flush=True)
