import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from adgen import AdgenDataset, build_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_path", default="fnlp/cpt-base")
    parser.add_argument("--dataset", default="adgen")
    parser.add_argument("--lr", type=float, default=2e-5)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--epoch", type=int, default=5)
    parser.add_argument("--data_dir", default="data")
    args = parser.parse_args()

    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dataset = AdgenDataset(args.data_dir)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    model = DDP(build_model(args.model_path).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epoch):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(**{k: v.cuda() for k, v in batch.items()}).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
