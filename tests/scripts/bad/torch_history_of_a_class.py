import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Board:
    history = []


def work(rank, size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29545", rank=rank, world_size=size)
    loss = torch.rand(1)
    dist.all_reduce(loss)
    Board.history.append(loss.item())


if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
    print("mean", sum(Board.history) / len(Board.history))
