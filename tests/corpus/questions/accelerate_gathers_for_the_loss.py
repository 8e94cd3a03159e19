import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

accelerator = Accelerator()
transform = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])
train_set = datasets.CIFAR10("data", train=True, transform=transform)
train_loader = DataLoader(train_set, batch_size=256, shuffle=True, num_workers=4)
net = models.resnet18(num_classes=10)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
net, optimizer, train_loader = accelerator.prepare(net, optimizer, train_loader)

for epoch in range(20):
    net.train()
    for idx, (inputs, targets) in enumerate(train_loader):
        outputs = net(inputs)
        out_gather = accelerator.gather(outputs)
        tar_gather = accelerator.gather(targets)
        loss = criterion(out_gather, tar_gather)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(f"epoch {epoch}")
