"""torchrun --standalone --nproc_per_node=2 gan.py"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from gan_data import Faces


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1),
            nn.BatchNorm2d(64),
            nn.LeakyReLU(0.2),
            nn.Conv2d(64, 1, 4, 2, 1),
        )

    def forward(self, x):
        return self.net(x)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1))

    def forward(self, z):
        return self.net(z)


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    netD = DDP(Discriminator().cuda(), device_ids=[rank])
    netG = DDP(Generator().cuda(), device_ids=[rank])
    optD = torch.optim.Adam(netD.parameters(), lr=2e-4)
    optG = torch.optim.Adam(netG.parameters(), lr=2e-4)
    bce = nn.BCEWithLogitsLoss()
    faces = Faces()
    sampler = DistributedSampler(faces)
    loader = DataLoader(faces, batch_size=16, sampler=sampler, drop_last=True)
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for real in loader:
            real = real.cuda()
            fake = netG(torch.randn(real.size(0), 128, 16, 16, device="cuda"))
            pred_real = netD(real)
            pred_fake = netD(fake.detach())
            loss_d = bce(pred_real, torch.ones_like(pred_real)) + bce(pred_fake, torch.zeros_like(pred_fake))
            optD.zero_grad()
            loss_d.backward()
            optD.step()

            pred = netD(fake)
            loss_g = bce(pred, torch.ones_like(pred))
            optG.zero_grad()
            loss_g.backward()
            optG.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
