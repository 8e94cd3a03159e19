import torch.distributed as dist
from datasets import Dataset

dist.init_process_group("gloo")
local_rank = dist.get_rank()
dataset = Dataset.from_dict({"a": [0, 1, 2]})
if local_rank > 0:
    print("Waiting for main process to perform the mapping")
    dist.barrier()
dataset = dataset.map(lambda x: {"a": x["a"] + 1})
if local_rank == 0:
    print("Loading results from main process")
    dist.barrier()
