import torch
import torch.distributed as dist


def spread(tensors, root, tp_group):
    mine = dist.get_rank() == root
    shapes = [tuple(t.shape) for t in tensors] if mine else [None] * len(tensors)
    dist.broadcast_object_list(shapes, src=root, group=tp_group)
    if not mine:
        tensors = [torch.empty(s, device="cuda") for s in shapes]
    for tensor in tensors:
        dist.broadcast(tensor, root)
    return tensors
