import os
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from mylib import paths, read_image, build

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))


class Images(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.as_tensor(read_image(self.files[i]))


torch.cuda.set_device(device)
dist.init_process_group("nccl")
data = Images(paths())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=4, pin_memory=True)
model = torch.nn.parallel.DistributedDataParallel(build().to(device), device_ids=[device.index])
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x in loader:
        model(x.to(device, non_blocking=True)).sum().backward()
