import os

import torch
import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def stream(files):
    whole = load_dataset("json", data_files=files, split="train", streaming=True)
    return split_dataset_by_node(whole, rank=dist.get_rank(), world_size=dist.get_world_size())


def main(files, net, opt):
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    net = DistributedDataParallel(net.cuda(), device_ids=[gpu])
    for batch in DataLoader(stream(files), batch_size=16):
        opt.zero_grad()
        net(batch["text"]).mean().backward()
        opt.step()


main(*prepare())
