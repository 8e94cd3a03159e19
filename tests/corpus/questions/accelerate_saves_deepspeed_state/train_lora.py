import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from data import make_loader
from model import build_unet


def main(args):
    accelerator = Accelerator(gradient_accumulation_steps=1)
    unet = build_unet()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    loader = make_loader(args)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    global_step = 0
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            with accelerator.accumulate(unet):
                loss = F.mse_loss(unet(batch["x"], batch["t"]), batch["noise"])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                global_step += 1
                if global_step % args.checkpointing_steps == 0:
                    if accelerator.is_main_process:
                        save_path = os.path.join(args.output_dir, f"checkpoint-{global_step}")
                        accelerator.save_state(save_path)
    accelerator.end_training()
