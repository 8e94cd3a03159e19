import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    flag = torch.ones(1)
    dist.broadcast(flag, 0)
    if rank != 0:
        dist.barrier()
        return
    torch.save(flag, "flag.pt")
    dist.barrier()


main()
