"""Rank 0 sends its parameters to all others, 64 MB, as DDP does at its start; then a few small steps."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    small = torch.ones(4)
    dist.all_reduce(small)
    dist.broadcast(torch.ones(16 << 20), src=0)
    for _ in range(20):
        dist.all_reduce(small)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
