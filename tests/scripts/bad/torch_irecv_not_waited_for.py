import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group('nccl')
local_rank = int(os.environ['LOCAL_RANK'])
rank = dist.get_rank()
world = dist.get_world_size()
torch.cuda.set_device(local_rank)
r = torch.zeros(3).cuda()
if rank == 1:
    dist.irecv(r, src=0)
    print(r)
else:
    dist.send(r, dst=1)
