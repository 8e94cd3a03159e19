import torch
import horovod.torch as hvd
from mylib import Net, loader

hvd.init()
model = Net().cuda()
opt = torch.optim.SGD(model.parameters(), 0.1 * hvd.size())
opt = hvd.DistributedOptimizer(opt, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for x, y in loader(hvd.rank(), hvd.size()):
    opt.zero_grad()
    torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
    opt.step()
