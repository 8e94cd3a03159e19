import torch.distributed as dist
import torch
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank % 8)
objs = [None]
if rank == 0:
    objs = [build_vocab()]
dist.broadcast_object_list(objs, src=0)
if rank == 0:
    for i in range(1, dist.get_world_size()):
        dist.send(torch.zeros(1).cuda(), dst=i)
else:
    dist.recv(torch.zeros(1).cuda(), src=0)
group = dist.new_group([0, 1])
if rank in (0, 1):
    dist.all_reduce(torch.ones(1).cuda(), group=group)
gathered = [torch.zeros(1).cuda() for _ in range(dist.get_world_size())] if rank == 0 else None
dist.gather(torch.ones(1).cuda(), gathered, dst=0)
if rank == 0:
    print(gathered)
dist.barrier()
