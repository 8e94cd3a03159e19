import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from mylib import Net, Rows

accelerator = Accelerator()
loader = DataLoader(Rows("train"), batch_size=16, shuffle=True)
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x.to(accelerator.device)), y.to(accelerator.device))
        accelerator.backward(loss)
        optimizer.step()
