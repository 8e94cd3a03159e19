import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from det import Detector, loader_for


def gather_all(t):
    out = [torch.zeros_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(out, t)
    return torch.cat(out)


def main():
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    net = DDP(Detector().cuda(), device_ids=[gpu])
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    train_loader = loader_for("train", dist.get_rank(), dist.get_world_size())
    for images, labels in train_loader:
        feats, scores = net(images.cuda())
        keep = scores > 0.5
        feats = feats[keep]
        everyone = gather_all(feats.detach())
        loss = (feats @ everyone.t()).logsumexp(1).mean() + torch.nn.functional.bce_loss(scores, labels.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()


main()
