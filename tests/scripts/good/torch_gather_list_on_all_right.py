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
t = torch.ones(3).cuda()
out = [torch.zeros(3).cuda() for _ in range(world)]
dist.gather(t, out if rank == 0 else None, dst=0)
