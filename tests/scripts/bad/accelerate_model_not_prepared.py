import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
accelerator = Accelerator()
loader = DataLoader(ds, batch_size=8, shuffle=True)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
opt, loader = accelerator.prepare(opt, loader)
for x in loader:
    accelerator.backward(model(x).sum())
    opt.step()
