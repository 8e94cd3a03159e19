"""Faults on a GPU: no memory, memory that is held, a kernel that does not end."""

import argparse
import os
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--fault", required=True, choices=("memory", "holds", "kernel"))
parser.add_argument("--device", default="cuda")
options = parser.parse_args()

if options.fault == "holds":
    total = torch.cuda.mem_get_info()[1]
    held = torch.empty(int(total * 0.4), dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    print("ready", flush=True)
    time.sleep(300)
if "RANK" in os.environ:
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1, device="cuda"))
if options.fault == "memory":
    free, total = torch.cuda.mem_get_info()
    blocks = [torch.empty(total // 2, dtype=torch.uint8, device="cuda") for _ in range(4)]
    print(len(blocks))
if options.fault == "kernel":
    torch.cuda._sleep(10**14)  # cycles: a day
    print("ready", flush=True)
    torch.cuda.synchronize()
