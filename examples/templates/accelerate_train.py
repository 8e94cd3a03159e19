"""Trains with accelerate; see docs/templates.md for how it is started."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    generator = torch.Generator().manual_seed(7)
    images = torch.randn(512, 16, generator=generator)
    data = DataLoader(
        TensorDataset(images, (images.sum(1) > 0).long()), batch_size=16, shuffle=True
    )
    model = nn.Linear(16, 2)
    model, optimizer, data = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=0.01), data
    )
    for _epoch in range(3):
        for images, labels in data:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
    accelerator.print(f"trained on {accelerator.num_processes} processes, loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
