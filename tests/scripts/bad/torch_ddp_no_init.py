import torch

net = torch.nn.Linear(2, 1)
model = torch.nn.parallel.DistributedDataParallel(net)
print(model(torch.ones(1, 2)))
