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
from torch.distributed.optim import ZeroRedundancyOptimizer
opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
opt.consolidate_state_dict(to=0)
if rank == 0:
    torch.save(opt.state_dict(), 'o.pt')
