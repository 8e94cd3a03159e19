import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
accelerator = Accelerator()
loader = DataLoader(ds, batch_size=8, shuffle=True)
model, loader = accelerator.prepare(model, loader)
for x in loader:
    tokens = accelerator.unwrap_model(model).generate(x)
    tokens = accelerator.gather(tokens)
