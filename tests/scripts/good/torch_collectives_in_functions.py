"""Functions with collectives in them, each of which all ranks reach, one way or another."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def synchronize():
    if not dist.is_available() or not dist.is_initialized():
        return
    if dist.get_world_size() == 1:
        return
    dist.barrier()


def reduce_dict(values, average=True):
    if dist.get_world_size() < 2:
        return values
    names = sorted(values)
    tensor = torch.stack([values[n] for n in names])
    dist.reduce(tensor, dst=0)
    if dist.get_rank() == 0 and average:
        tensor /= dist.get_world_size()
    return dict(zip(names, tensor))


def send_weights(model):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)


def receive_weights(model):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)


def save(model, path, wait=False):
    torch.save(model.state_dict(), path)
    if wait:
        synchronize()


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    if rank != 0:
        synchronize()
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    if rank == 0:
        synchronize()
    model = torch.nn.Linear(4, 1)
    if rank == 0:
        model.load_state_dict(torch.load("start.pt"))
        send_weights(model)
    else:
        receive_weights(model)
    model = DistributedDataParallel(model)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        losses = reduce_dict({"loss": loss.detach()})
        if rank == 0:
            print(epoch, losses["loss"].item())
            save(model, "model.pt")
        synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
