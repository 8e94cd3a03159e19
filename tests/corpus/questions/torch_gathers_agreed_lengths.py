import torch
import torch.distributed as dist


@torch.no_grad()
def from_all(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


class Contrast(torch.nn.Module):
    def forward(self, ids, mask):
        length = mask.sum(dim=1).max()
        dist.all_reduce(length, op=dist.ReduceOp.MAX)
        longest = length.item()
        return self.queue(from_all(ids[:, :longest]))
