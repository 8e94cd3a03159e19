import torch.distributed as dist
from mylib import build, train


def best(loss):
    dist.all_reduce(loss)
    return loss.item() < 1


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loss = train(build())
    if rank == 0 and best(loss):
        print("better")
    match rank:
        case 0:
            dist.barrier()
        case _:
            print("done")


main()
