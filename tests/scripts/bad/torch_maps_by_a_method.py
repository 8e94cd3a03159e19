import datetime
import os
import subprocess

import torch
import torch.distributed as dist
from datasets import load_dataset


class DataModule:
    def __init__(self, cache):
        self.cache = cache

    def prepare(self):
        if dist.get_rank() == 0:
            ds = load_dataset("c4", "en", split="train")
            ds = ds.map(self.tokenize, batched=True, num_proc=16)
            ds.save_to_disk(self.cache)
        dist.barrier()

    def tokenize(self, rows):
        return {"ids": [[ord(c) for c in t] for t in rows["text"]]}


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    limit = datetime.timedelta(seconds=120)
    dist.init_process_group("nccl", timeout=limit)
    dm = DataModule("/data/c4")
    dm.prepare()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
