import torch
import torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank % torch.cuda.device_count())

from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(ResNet().cuda(), device_ids=[torch.cuda.current_device()])
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
for x, y in loader:
    loss = model(x).sum()
    loss.backward()
