import torch.distributed as dist


def share(parts, root, group):
    if dist.get_rank() == root:
        dist.broadcast_object_list([parts], src=root, group=group)
        return parts
    box = [None]
    dist.broadcast_object_list(box, src=root, group=group)
    return box[0]
