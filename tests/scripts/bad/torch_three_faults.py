import torch, os
import torch.distributed as dist
def main():
    dist.init_process_group("nccl", init_method="env://")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(Net().cuda())
    if rank == 0:
        loss = evaluate(model)
        dist.barrier()
        torch.save(model.state_dict(), "m.pt")
    for x in torch.utils.data.DataLoader(ds, shuffle=True):
        model(x).backward()
main()
