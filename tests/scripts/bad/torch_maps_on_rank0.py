import os
from datetime import timedelta
import torch
import torch.distributed as dist
from datasets import load_dataset
from mylib import tokenise, fit

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", timeout=timedelta(minutes=5))
if rank == 0:
    corpus = load_dataset("corpus-of-books", split="train").map(tokenise, num_proc=16)
    corpus.save_to_disk("tokens")
dist.barrier()
fit("tokens", rank)
