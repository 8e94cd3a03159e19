import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(2, 1)
for epoch in range(3):
    loss = model(torch.ones(1, 2)).sum()
    if rank == 0:
        torch.save(model.state_dict(), f"epoch{epoch}.pt")
        dist.barrier()
