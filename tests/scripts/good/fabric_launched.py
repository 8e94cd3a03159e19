import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.fabric import Fabric
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor

fabric = Fabric(accelerator="cuda", devices=2)
fabric.launch()
encoder = nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
model, optimizer = fabric.setup(encoder, optimizer)
loader = fabric.setup_dataloaders(DataLoader(MNIST("data", transform=ToTensor()), batch_size=64, shuffle=True))

for epoch in range(5):
    for x, y in loader:
        loss = F.cross_entropy(model(x.flatten(1)), y)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
    fabric.print(epoch, loss.item())
