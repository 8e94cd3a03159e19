import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, world_size):
    dist.init_process_group("nccl", "tcp://127.0.0.1:29500", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    train()


def main():
    world_size = torch.cuda.device_count()
    print(torch.cuda.get_device_name(0), torch.cuda.is_available())
    processes = []
    for rank in range(world_size):
        p = mp.Process(target=worker, args=(rank, world_size))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()


main()
