import torch
import torch.distributed as dist
import torch.multiprocessing as mp

losses = {}


def train(rank, world_size):
    dist.init_process_group("gloo", "tcp://127.0.0.1:29500", rank=rank, world_size=world_size)
    model = torch.nn.Linear(4, 1)
    losses[rank] = float(model(torch.ones(4)))
    dist.destroy_process_group()


def main():
    world_size = 2
    workers = [mp.Process(target=train, args=(r, world_size)) for r in range(world_size)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()

    print("mean loss", sum(losses.values()) / len(losses))


if __name__ == "__main__":
    main()
