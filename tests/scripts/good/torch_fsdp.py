import os
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, FullStateDictConfig, StateDictType
from torch.utils.data.distributed import DistributedSampler
def setup():
    dist.init_process_group("nccl")
def main():
    local_rank = int(os.environ['LOCAL_RANK'])
    rank = int(os.environ['RANK'])
    world_size = int(os.environ['WORLD_SIZE'])
    setup()
    sampler1 = DistributedSampler(ds, rank=rank, num_replicas=world_size, shuffle=True)
    loader = torch.utils.data.DataLoader(ds, batch_size=4, sampler=sampler1)
    torch.cuda.set_device(local_rank)
    model = FSDP(Net(), device_id=torch.cuda.current_device())
    opt = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        model.train()
        fsdp_loss = torch.zeros(2).to(local_rank)
        sampler1.set_epoch(epoch)
        for batch in loader:
            opt.zero_grad()
            out = model(batch)
            out.loss.backward()
            opt.step()
        dist.all_reduce(fsdp_loss, op=dist.ReduceOp.SUM)
        if rank == 0:
            print(fsdp_loss[0] / fsdp_loss[1])
    dist.barrier()
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
        cpu_state = model.state_dict()
    if rank == 0:
        torch.save(cpu_state, "model.pt")
    dist.destroy_process_group()
if __name__ == "__main__":
    main()
