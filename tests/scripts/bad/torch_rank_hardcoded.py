import os, torch
import torch.distributed as dist
os.environ['RANK'] = '0'
os.environ['WORLD_SIZE'] = '2'
os.environ['MASTER_ADDR'] = '192.168.0.1'
os.environ['MASTER_PORT'] = '29500'
dist.init_process_group('gloo')
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
