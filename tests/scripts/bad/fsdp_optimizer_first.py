import torch
import torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank % torch.cuda.device_count())

from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
model = FSDP(model)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
