import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader

from segdiff import MedSegDiff, ScanDataset

accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
model = MedSegDiff(image_size=128)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loader = DataLoader(ScanDataset("train"), batch_size=8, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

for epoch in range(100):
    for img, mask in loader:
        with accelerator.accumulate(model):
            noise, pred = model(mask, img)
            loss = F.mse_loss(pred, noise)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    accelerator.print(epoch, loss.item())
