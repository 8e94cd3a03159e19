import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import get_cosine_schedule_with_warmup

from image_edit import EditDataset, Transformer2D, flow_loss

accelerator = Accelerator(gradient_accumulation_steps=4, mixed_precision="bf16")
dataset = EditDataset("train")
loader = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=4)
model = Transformer2D()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
scheduler = get_cosine_schedule_with_warmup(optimizer, 1000, 100000)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

global_step = 0
for epoch in range(10):
    for batch in loader:
        with accelerator.accumulate(model):
            loss = flow_loss(model, batch)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            global_step += 1
accelerator.wait_for_everyone()
accelerator.save_model(model, "out")
