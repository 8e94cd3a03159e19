import torch
import horovod.torch as hvd
hvd.init()
torch.cuda.set_device(hvd.local_rank())
sampler = torch.utils.data.distributed.DistributedSampler(ds, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(ds, sampler=sampler)
model = Net().cuda()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
avg = hvd.allreduce(x, name=f'loss.{hvd.rank()}')
