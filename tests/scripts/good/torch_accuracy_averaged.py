import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.datasets import Reddit
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv


class SAGE(torch.nn.Module):
    def __init__(self, in_channels, hidden, out_channels):
        super().__init__()
        self.conv1 = SAGEConv(in_channels, hidden)
        self.conv2 = SAGEConv(hidden, out_channels)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


@torch.no_grad()
def test(loader, model, rank):
    model.eval()
    total_correct = total_examples = 0
    for batch in loader:
        out = model(batch.x, batch.edge_index.to(rank))
        pred = out[: batch.batch_size].argmax(dim=-1)
        y = batch.y[: batch.batch_size].to(rank)
        total_correct += int((pred == y).sum())
        total_examples += batch.batch_size
    return torch.tensor(total_correct / total_examples, device=rank)


def run(rank, world_size, dataset):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    data = dataset[0].to(rank, "x", "y")
    index = data.train_mask.nonzero().view(-1)
    index = index[: index.numel() // world_size * world_size].chunk(world_size)[rank]
    loader = NeighborLoader(data, num_neighbors=[25, 10], input_nodes=index, batch_size=1024, shuffle=True)
    val_index = data.val_mask.nonzero().view(-1)
    val_index = val_index[: val_index.numel() // world_size * world_size].chunk(world_size)[rank]
    val_loader = NeighborLoader(data, num_neighbors=[25, 10], input_nodes=val_index, batch_size=1024)
    torch.manual_seed(12345)
    model = SAGE(dataset.num_features, 256, dataset.num_classes).to(rank)
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(1, 21):
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index.to(rank))[: batch.batch_size]
            loss = F.cross_entropy(out, batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
        dist.barrier()
        val_acc = test(val_loader, model, rank)
        dist.all_reduce(val_acc, op=dist.ReduceOp.SUM)
        val_acc /= world_size
        if rank == 0:
            print(f"Epoch: {epoch:02d}, Val accuracy: {val_acc:.4f}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    dataset = Reddit("data/Reddit")
    world_size = torch.cuda.device_count()
    mp.spawn(run, args=(world_size, dataset), nprocs=world_size, join=True)
