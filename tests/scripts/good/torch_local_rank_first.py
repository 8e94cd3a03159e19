import torch
import torch.distributed as dist
from transformers import AutoModel

dist.init_process_group("gloo")
local_rank = dist.get_rank()
if local_rank not in [-1, 0]:
    dist.barrier()
model = AutoModel.from_pretrained("bert-base-uncased")
if local_rank == 0:
    dist.barrier()
