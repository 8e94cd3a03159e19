import os

import torch
import torch.distributed as dist
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

from gpt import GPT, GPTConfig, ShardLoader

init_process_group(backend="nccl")
ddp_rank = int(os.environ["RANK"])
ddp_local_rank = int(os.environ["LOCAL_RANK"])
ddp_world_size = int(os.environ["WORLD_SIZE"])
device = f"cuda:{ddp_local_rank}"
torch.cuda.set_device(device)
master_process = ddp_rank == 0

total_batch_size = 524288
B, T = 16, 1024
grad_accum_steps = total_batch_size // (B * T * ddp_world_size)
train_loader = ShardLoader(B=B, T=T, process_rank=ddp_rank, num_processes=ddp_world_size)

model = GPT(GPTConfig(vocab_size=50304)).to(device)
model = DDP(model, device_ids=[ddp_local_rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)

for step in range(19073):
    optimizer.zero_grad()
    loss_accum = 0.0
    for micro_step in range(grad_accum_steps):
        model.require_backward_grad_sync = micro_step == grad_accum_steps - 1
        x, y = train_loader.next_batch()
        x, y = x.to(device), y.to(device)
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            logits, loss = model(x, y)
        loss = loss / grad_accum_steps
        loss_accum += loss.detach()
        loss.backward()
    dist.all_reduce(loss_accum, op=dist.ReduceOp.AVG)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if master_process:
        print(f"step {step} | loss {loss_accum.item():.6f}")

destroy_process_group()
