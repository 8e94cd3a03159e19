import torch
import torch.distributed as dist
from drafts import DraftModel, NoValidAnchorsError, make_loader
from torch.nn.parallel import DistributedDataParallel as DDP


def train(cfg):
    dist.init_process_group("nccl")
    local = int(__import__("os").environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(DraftModel(cfg).cuda(), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for batch in make_loader(cfg, dist.get_rank(), dist.get_world_size()):
        try:
            loss = model(batch["ids"].cuda(), batch["mask"].cuda())
        except NoValidAnchorsError:
            continue
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
