"""Trains with the Trainer of Hugging Face's transformers; see docs/templates.md for how it is started."""

import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Digits(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(7)
        self.images = torch.randn(512, 16, generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        return {"images": image, "labels": (image.sum() > 0).long()}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 2)

    def forward(self, images, labels):
        logits = self.linear(images)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=2,
        per_device_train_batch_size=16,
        use_cpu=not torch.cuda.is_available(),
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Trainer(Model(), arguments, train_dataset=Digits())
    trainer.train()
    if trainer.is_world_process_zero():
        size = arguments.world_size
        print(f"trained on {size} processes, {trainer.state.global_step} steps")


if __name__ == "__main__":
    main()
