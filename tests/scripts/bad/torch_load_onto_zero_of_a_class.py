import os
import torch
import torch.nn as nn
from torch import distributed as dist


class Snapshot:
    DEVICE = "cuda:0"

    def __init__(self, path):
        self.path = path

    def exists(self):
        return os.path.exists(self.path)

    def restore_into(self, module):
        blob = torch.load(self.path, map_location=self.DEVICE)
        module.load_state_dict(blob["weights"])
        return blob["step"]


def build(local):
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8), 6).to(local)
    return nn.parallel.DistributedDataParallel(net, device_ids=[local], output_device=local)


if __name__ == "__main__":
    dist.init_process_group(backend="nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    ddp = build(local)
    snap = Snapshot("snap.pt")
    step = snap.restore_into(ddp.module) if snap.exists() else 0
    opt = torch.optim.AdamW(ddp.parameters())
    while step < 10_000:
        opt.zero_grad()
        ddp(torch.randn(10, 4, 256, device=local)).mean().backward()
        opt.step()
        step += 1
        if step % 1000 == 0 and dist.get_rank() == 0:
            torch.save({"weights": ddp.module.state_dict(), "step": step}, snap.path)
