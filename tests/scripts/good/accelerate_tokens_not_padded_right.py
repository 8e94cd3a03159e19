import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
accelerator = Accelerator()
loader = DataLoader(ds, batch_size=8, shuffle=True)
model, loader = accelerator.prepare(model, loader)
for x in loader:
    tokens = accelerator.unwrap_model(model).generate(x)
    tokens = accelerator.pad_across_processes(tokens, dim=1, pad_index=0)
    tokens = accelerator.gather(tokens)
