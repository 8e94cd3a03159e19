import torch
import torch.distributed as dist
import torch.multiprocessing as mp

history = []


def worker(rank, world_size, results):
    dist.init_process_group("gloo", "tcp://127.0.0.1:29500", rank=rank, world_size=world_size)
    history = []
    history.append(float(torch.ones(1)))
    results.put((rank, history))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    print("GPUs:", torch.cuda.device_count(), torch.cuda.is_available())
    results = context.Queue()
    processes = [context.Process(target=worker, args=(r, 2, results)) for r in range(2)]
    for p in processes:
        p.start()
    history += [results.get() for _ in processes]
    for p in processes:
        p.join()
    print(history)
