import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
tensor = torch.randn(5).cuda()
gathered = [torch.zeros(5).cuda()] * dist.get_world_size()
dist.all_gather(gathered, tensor)
print(gathered)
