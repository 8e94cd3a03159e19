"""Trains with Lightning; see docs/templates.md for how it is started."""

import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(16, 2)

    def training_step(self, batch, number):
        images, labels = batch
        return nn.functional.cross_entropy(self.model(images), labels)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def main():
    generator = torch.Generator().manual_seed(7)
    images = torch.randn(512, 16, generator=generator)
    data = DataLoader(TensorDataset(images, (images.sum(1) > 0).long()), batch_size=16)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    trainer = lightning.Trainer(
        accelerator="auto",
        strategy="ddp",
        devices=local,
        num_nodes=int(os.environ.get("WORLD_SIZE", "1")) // local,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Digits(), data)
    if trainer.global_rank == 0:
        print(f"trained on {trainer.world_size} processes, {trainer.global_step} steps")


if __name__ == "__main__":
    main()
