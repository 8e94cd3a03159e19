import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, models, transforms


def main_worker(gpu, args):
    torch.cuda.set_device(gpu)
    dist.init_process_group(
        backend="nccl",
        init_method="tcp://" + args.master_addr + ":" + args.master_port,
        world_size=args.world_size,
        rank=args.rank,
    )
    model = DDP(models.resnet50().cuda(gpu), device_ids=[gpu])
    train_set = datasets.ImageFolder("/data/train", transforms.ToTensor())
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=64, sampler=sampler, num_workers=4)
    criterion = torch.nn.CrossEntropyLoss().cuda(gpu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for images, target in loader:
            loss = criterion(model(images.cuda(gpu)), target.cuda(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master_addr", default=os.environ.get("MASTER_ADDR"))
    parser.add_argument("--master_port", default=os.environ.get("MASTER_PORT"))
    parser.add_argument("--world_size", type=int, default=int(os.environ.get("WORLD_SIZE", 1)))
    parser.add_argument("--rank", type=int, default=int(os.environ.get("RANK", 0)))
    args = parser.parse_args()
    ngpus = torch.cuda.device_count()
    args.world_size = args.world_size * ngpus
    mp.spawn(main_worker, nprocs=ngpus, args=(args,))


if __name__ == "__main__":
    main()
