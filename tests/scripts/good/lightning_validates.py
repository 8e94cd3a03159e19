"""Validates on all processes, and prints on the main one."""

import lightning.pytorch as pl

from project import Data, Net

trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=3)
model = Net()
trainer.fit(model, Data())
metrics = trainer.validate(model, Data())
if trainer.is_global_zero:
    print(metrics)
