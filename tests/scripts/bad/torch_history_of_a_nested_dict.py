import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

history = {"loss": [], "best": None}


def record(loss):
    history["loss"].append(loss)
    if history["best"] is None or loss < history["best"]:
        history["best"] = loss


def train(rank, world):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29511"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            record(loss.item())
    dist.destroy_process_group()


def plot(values):
    import matplotlib.pyplot as plt

    plt.plot(values)
    plt.savefig("loss.png")


if __name__ == "__main__":
    mp.spawn(train, nprocs=2, args=(2,))
    plot(history["loss"])
    print("best loss", history["best"])
