import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from clip_model import ShapeClip
from shapes import ShapeDataset


def gather_features(feat):
    feats = [torch.zeros_like(feat) for _ in range(dist.get_world_size())]
    dist.all_gather(feats, feat)
    return torch.cat(feats, dim=0)


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)

    dataset = ShapeDataset("train")
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler, drop_last=True)

    model = DDP(ShapeClip().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    for epoch in range(50):
        sampler.set_epoch(epoch)
        for image, text in loader:
            image_feat, text_feat, scale = model(image.cuda(), text.cuda())
            image_feat = gather_features(image_feat)
            text_feat = gather_features(text_feat)
            logits = scale * image_feat @ text_feat.t()
            labels = torch.arange(logits.size(0), device=logits.device)
            loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "clip.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
