import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 32 * 32, 10)

    def forward(self, x):
        return self.fc(F.relu(self.norm(self.conv(x))).flatten(1))


def train(gpu, world_size):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:22222", rank=gpu, world_size=world_size)
    torch.cuda.set_device(gpu)
    model = DistributedDataParallel(Classifier().cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(10):
        for images, labels in loader(gpu, world_size, epoch):
            loss = F.cross_entropy(model(images.cuda(gpu)), labels.cuda(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if gpu == 0:
            model.train()
            with torch.no_grad():
                for images, labels in validation():
                    outputs = model(images.cuda(gpu))
                    print(epoch, F.cross_entropy(outputs, labels.cuda(gpu)).item())
        dist.barrier()


if __name__ == "__main__":
    mp.spawn(train, nprocs=2, args=(2,))
