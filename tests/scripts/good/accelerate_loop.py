from accelerate import Accelerator
from torch.utils.data import DataLoader
import torch

accelerator = Accelerator()
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(torch.randn(64, 2), shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(2):
    for batch in loader:
        accelerator.backward(model(batch).sum())
        optimizer.step()
torch.save(model.state_dict(), "model.pt")
