import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 4


def worker(rank):
    dist.init_process_group(
        "gloo", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=WORLD_SIZE
    )
    dist.barrier()


def main():
    mp.spawn(worker, nprocs=2)


if __name__ == "__main__":
    main()
