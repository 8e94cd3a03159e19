import torch, os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    model = DDP(Net().to(local), device_ids=[local])
    sampler = torch.utils.data.DistributedSampler(ds)
    loader = torch.utils.data.DataLoader(ds, shuffle=True, batch_size=8)
    for epoch in range(9):
        for x, y in loader:
            loss = f(model(x), y)
            loss.backward()
        torch.save(model.state_dict(), "last.pt")
main()
